package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"
)

// chunk is what one answer brought of one partition.
type chunk struct {
	partition     int
	records       []Record
	next          int64 // offset to go on from: beyond the records and any hole after them
	highWatermark int64
	bytes         int
}

// follower reads partitions of one topic from given positions, for ever: it finds the leaders, goes after them when they change,
// and comes back when brokers do. Chunks of one partition are delivered in order; of several, from several goroutines.
type follower struct {
	cluster   *cluster
	logger    *slog.Logger
	topic     string
	positions map[int]int64
	wait      time.Duration // how long a broker may hold an answer back when there is nothing
	maxBytes  int           // of one answer, and half of that of one partition

	// deliver takes a chunk. It may block: the broker is then not asked for more.
	deliver func(ctx context.Context, c chunk) error
	// outside decides about a position outside the log: where to go on, or to stop with this partition.
	outside func(ctx context.Context, partition int, position int64, log logBounds) (next int64, goOn bool)
	// heard is told whenever all that a partition has is delivered; may be nil.
	heard func(partition int)
}

// run follows until ctx ends or deliver fails.
func (f *follower) run(ctx context.Context) error {
	for failures := 0; ; failures++ {
		began := now()
		err := f.session(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var refused *deliveryError
		if errors.As(err, &refused) {
			return refused.err
		}
		if now().Sub(began) > 10*time.Second {
			failures = 0
		}
		f.logger.Debug("reading again", "topic", f.topic, "failures", failures, "error", err)
		pause(ctx, backoff(failures, 20*time.Millisecond, 2*time.Second))
	}
}

// deliveryError carries an error of deliver out of a session.
type deliveryError struct{ err error }

func (e *deliveryError) Error() string { return e.err.Error() }

// session finds the leaders and reads from all of them, until something changes.
func (f *follower) session(ctx context.Context) error {
	if len(f.positions) == 0 { // stopped everywhere
		<-ctx.Done()
		return ctx.Err()
	}
	seen, err := f.cluster.layout(ctx, f.topic)
	if err != nil {
		return err
	}
	readers, err := f.readers(seen)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	for _, r := range readers {
		wg.Go(func() { cancel(r.run(ctx)) })
	}
	wg.Wait()
	for _, r := range readers {
		r.report(f.positions)
	}
	return context.Cause(ctx)
}

// readers makes one reader for each broker that leads some of the partitions.
func (f *follower) readers(seen layout) (map[int32]*brokerReader, error) {
	t := seen.topics[f.topic]
	if t.err != nil {
		return nil, t.err
	}
	readers := make(map[int32]*brokerReader)
	for p, position := range f.positions {
		if p >= len(t.leaders) || seen.brokers[t.leaders[p]] == "" {
			return nil, fmt.Errorf("partition %d: %w", p, kafka.LeaderNotAvailable)
		}
		r := readers[t.leaders[p]]
		if r == nil {
			r = &brokerReader{follower: f, address: seen.brokers[t.leaders[p]], decoder: newDecoder(f.topic), stopped: make(map[int]bool)}
			readers[t.leaders[p]] = r
		}
		r.partitions = append(r.partitions, fetchPartition{partition: int32(p), offset: position, maxBytes: int32(max(f.maxBytes/2, 1<<20))})
	}
	return readers, nil
}

// brokerReader reads the partitions that one broker leads over one connection.
type brokerReader struct {
	follower   *follower
	address    string
	decoder    *decoder
	partitions []fetchPartition
	stopped    map[int]bool
}

// report writes down how far the reader got.
func (r *brokerReader) report(positions map[int]int64) {
	for _, p := range r.partitions {
		positions[int(p.partition)] = p.offset
	}
	for p := range r.stopped {
		delete(positions, p)
	}
}

func (r *brokerReader) run(ctx context.Context) error {
	conn, err := connect(ctx, r.follower.cluster.dialer, r.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for first := true; ; first = false {
		if err := r.runOnce(ctx, conn, first); err != nil {
			return err
		}
		if len(r.partitions) == 0 {
			<-ctx.Done()
			return ctx.Err()
		}
	}
}

// runOnce asks for everything once and delivers what came. The first answer is delivered even if empty: it tells how long the log is.
func (r *brokerReader) runOnce(ctx context.Context, conn *connection, first bool) error {
	f := r.follower
	request := &fetch{
		topic: f.topic, waitMillis: int32(f.wait.Milliseconds()), maxBytes: int32(f.maxBytes), partitions: r.partitions, clientID: f.cluster.dialer.ClientID,
	}
	if first {
		request.waitMillis = 0
	}
	if _, err := conn.roundTrip(ctx, f.wait+requestTimeout, request); err != nil {
		return err
	}
	for _, a := range request.answers {
		if err := r.take(ctx, a, first); err != nil {
			return err
		}
	}
	r.rotate()
	return nil
}

// rotate lets another partition come first: a broker fills its answer in the order asked, and the last ones might starve.
func (r *brokerReader) rotate() {
	if n := len(r.partitions); n > 1 {
		r.partitions = append(r.partitions[1:n:n], r.partitions[0])
	}
}

// take draws the conclusion from the answer for one partition.
func (r *brokerReader) take(ctx context.Context, a fetchAnswer, first bool) error {
	p := r.find(a.partition)
	if p == nil {
		return nil
	}
	switch a.code {
	case 0:
	case kafka.OffsetOutOfRange:
		return r.outside(ctx, p)
	default:
		return fmt.Errorf("partition %d: %w", a.partition, a.code)
	}
	records, next, err := r.decoder.records(a.records, int(a.partition), p.offset)
	if err != nil && len(records) == 0 {
		r.follower.logger.Error("cannot read from the log", "topic", r.follower.topic, "partition", a.partition, "offset", p.offset, "error", err)
		return err
	}
	if next == p.offset && !first {
		r.hear(a, next)
		return nil
	}
	p.offset = next
	c := chunk{partition: int(a.partition), records: records, next: next, highWatermark: a.highWatermark, bytes: len(a.records)}
	if err := r.follower.deliver(ctx, c); err != nil {
		return &deliveryError{err}
	}
	r.hear(a, next)
	return nil
}

func (r *brokerReader) hear(a fetchAnswer, next int64) {
	if r.follower.heard != nil && next >= a.highWatermark {
		r.follower.heard(int(a.partition))
	}
}

func (r *brokerReader) find(partition int32) *fetchPartition {
	for i := range r.partitions {
		if r.partitions[i].partition == partition {
			return &r.partitions[i]
		}
	}
	return nil
}

// outside verifies with the leader that a position lies outside the log and has it decided what to do.
func (r *brokerReader) outside(ctx context.Context, p *fetchPartition) error {
	partition := int(p.partition)
	bounds, err := r.follower.cluster.bounds(ctx, r.follower.topic, []int{partition})
	if err != nil {
		return err
	}
	log := bounds[partition]
	if p.offset >= log.start && p.offset <= log.end {
		return fmt.Errorf("partition %d, offset %d: %w", partition, p.offset, kafka.OffsetOutOfRange) // a broker that is behind: again
	}
	next, goOn := r.follower.outside(ctx, partition, p.offset, log)
	if goOn {
		p.offset = next
		return nil
	}
	r.stopped[partition] = true
	for i := range r.partitions {
		if int(r.partitions[i].partition) == partition {
			r.partitions = append(r.partitions[:i:i], r.partitions[i+1:]...)
			break
		}
	}
	return nil
}
