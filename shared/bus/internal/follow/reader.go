package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	kafka "github.com/segmentio/kafka-go"
	"golang.org/x/sync/semaphore"

	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// brokerReader reads the partitions that one broker leads over one connection.
type brokerReader struct {
	session    *session
	follower   *Follower
	broker     int32
	address    string
	decoder    *batch.Decoder
	partitions []broker.FetchPartition
	memory     []byte // for the next answer
	busy       bool   // the last answer had records

	coming []broker.FetchPartition // under the session's lock: read from the next request on
}

// join adds a partition. The caller holds the session's lock.
func (r *brokerReader) join(p broker.FetchPartition) {
	r.coming = append(r.coming, p)
}

// admit adds new partitions. A reader without partitions is done, and
// unregistered at once.
func (r *brokerReader) admit() bool {
	r.session.mu.Lock()
	defer r.session.mu.Unlock()
	r.partitions = append(r.partitions, r.coming...)
	r.coming = nil
	if len(r.partitions) == 0 {
		delete(r.session.readers, r.broker)
	}
	return len(r.partitions) > 0
}

// leave gives all partitions back.
func (r *brokerReader) leave(why error) {
	r.session.mu.Lock()
	delete(r.session.readers, r.broker)
	partitions := append(r.partitions, r.coming...)
	r.session.mu.Unlock()
	r.session.lose(why, partitions...)
}

// run reads until it has no partition, or the broker does not answer.
func (r *brokerReader) run(ctx context.Context) {
	err := r.read(ctx)
	if err == nil {
		return
	}
	var refused *deliveryError
	if errors.As(err, &refused) {
		r.session.end(refused.err)
	}
	r.leave(fmt.Errorf("broker %q: %w", r.address, err))
}

// deliveryError carries an error of Deliver out of a session.
type deliveryError struct{ err error }

func (e *deliveryError) Error() string { return e.err.Error() }

func (r *brokerReader) read(ctx context.Context) error {
	conn, err := broker.Connect(ctx, r.follower.Cluster.Dialer, r.address)
	if err != nil {
		return err
	}
	defer conn.Close()
	for r.admit() {
		if err := r.runOnce(ctx, conn); err != nil {
			return err
		}
	}
	return nil
}

// runOnce asks for all partitions once and delivers the answers. A
// partition's first answer is delivered even if empty: it has the end
// of the log.
func (r *brokerReader) runOnce(ctx context.Context, conn *broker.Connection) error {
	f := r.follower
	r.share()
	wait, least := r.wait()
	request := &broker.Fetch{
		Topic: f.ID, WaitMillis: int32(wait.Milliseconds()), MinBytes: least, MaxBytes: int32(f.MaxBytes), Partitions: r.partitions,
		ClientID: f.Cluster.Dialer.ClientID, Memory: r.memory,
	}
	if _, err := conn.RoundTrip(ctx, wait+broker.RequestTimeout, request); err != nil {
		return err
	}
	r.busy = false
	served := make(map[int32]bool)
	for _, a := range request.Answers {
		served[a.Partition] = len(a.Records) > 0
		r.busy = r.busy || served[a.Partition]
	}
	if err := r.takeAll(ctx, request.Answers); err != nil {
		return err
	}
	if r.memory = nil; f.Lends && len(request.Memory) >= worthKeeping {
		r.memory = request.Memory
	}
	r.rotate(served)
	return nil
}

// gatherBytes are many: a broker gathers no more of them.
const gatherBytes = 1 << 20

// wait returns how long a broker may wait for how many bytes. A reader of a
// light load lets it gather, as each answer costs both as much as many records.
func (r *brokerReader) wait() (longest time.Duration, least int32) {
	f := r.follower
	switch {
	case slices.ContainsFunc(r.partitions, func(p broker.FetchPartition) bool { return p.Fresh }):
		return 0, 1
	case r.busy && f.Gather > 0:
		return f.Gather, int32(min(gatherBytes, f.MaxBytes/2)) //nolint:gosec // at most gatherBytes
	}
	return f.Wait, 1
}

// minPartitionBytes is the limit of one partition in an answer, in
// bytes, however many there are.
const minPartitionBytes = 1 << 20

// share limits a partition to half of an answer, and to less if there
// are more of them.
func (r *brokerReader) share() {
	for i := range r.partitions {
		r.partitions[i].MaxBytes = int32(max(r.follower.MaxBytes/2/len(r.partitions), minPartitionBytes))
	}
}

// worthKeeping is the size from which on an answer's memory is reused:
// a reader at the end of the log holds none.
const worthKeeping = 64 << 10

// rotate moves partitions to the front for which an answer had no room:
// a broker fills it in the requested order, and the last might starve.
func (r *brokerReader) rotate(served map[int32]bool) {
	if n := len(r.partitions); n > 1 {
		first := func(p broker.FetchPartition) int {
			if served[p.Partition] {
				return 1
			}
			return 0
		}
		r.partitions = append(r.partitions[1:n:n], r.partitions[0])
		slices.SortStableFunc(r.partitions, func(a, b broker.FetchPartition) int { return first(a) - first(b) })
	}
}

// takeAll takes a piece of each partition in turn: none waits for
// all of another.
func (r *brokerReader) takeAll(ctx context.Context, answers []broker.FetchAnswer) error {
	for len(answers) > 0 {
		left := answers[:0]
		for _, a := range answers {
			rest, err := r.take(ctx, a)
			if err != nil {
				return err
			}
			if a.Records = rest; rest != nil {
				left = append(left, a)
			}
		}
		answers = left
	}
	return nil
}

// take handles the answer for one partition up to one piece of its
// records, and returns the rest.
func (r *brokerReader) take(ctx context.Context, a broker.FetchAnswer) (rest []byte, err error) {
	i := slices.IndexFunc(r.partitions, func(p broker.FetchPartition) bool { return p.Partition == a.Partition })
	if i < 0 {
		return nil, nil
	}
	switch a.Code {
	case 0:
		return r.receive(ctx, i, a)
	case kafka.OffsetOutOfRange:
		r.outside(ctx, i)
		return nil, nil
	default:
		r.lose(i, a.Code)
		return nil, nil
	}
}

// maxPiece is how many bytes are unpacked before they are delivered.
const maxPiece = 512 << 10

// receive delivers a piece of a partition's answer, and returns the rest.
func (r *brokerReader) receive(ctx context.Context, i int, a broker.FetchAnswer) (rest []byte, err error) {
	p := &r.partitions[i]
	read, err := r.decoder.Piece(a.Records, int(a.Partition), p.Offset, maxPiece)
	if err != nil && len(read.Records) == 0 {
		r.follower.Logger.Error("cannot read from the log", "partition", a.Partition, "offset", p.Offset, "error", err)
		r.lose(i, err)
		return nil, nil
	}
	if err := r.pass(ctx, p, a, read); err != nil {
		return nil, err
	}
	if read.Rest == nil { // after a failure as well: the next answer has it again, first
		r.atEnd(a, p.Offset)
	}
	return read.Rest, nil
}

// pass delivers one piece, unless it is empty and not the first.
func (r *brokerReader) pass(ctx context.Context, p *broker.FetchPartition, a broker.FetchAnswer, read batch.Piece) error {
	if read.Next == p.Offset && !p.Fresh {
		return nil
	}
	c := Chunk{
		Topic: r.follower.ID, Partition: int(a.Partition), Records: read.Records, Next: read.Next, HighWatermark: a.HighWatermark, Bytes: read.Bytes,
	}
	p.Offset, p.Fresh = read.Next, false
	if err := r.follower.Deliver(ctx, c); err != nil {
		return &deliveryError{err}
	}
	return nil
}

func (r *brokerReader) atEnd(a broker.FetchAnswer, next int64) {
	if r.follower.AtEnd != nil && next >= a.HighWatermark {
		r.follower.AtEnd(int(a.Partition))
	}
}

// drop removes a partition from the reader. The current request still
// uses the old slice.
func (r *brokerReader) drop(i int) broker.FetchPartition {
	p := r.partitions[i]
	r.partitions = append(r.partitions[:i:i], r.partitions[i+1:]...)
	return p
}

// lose gives a partition back.
func (r *brokerReader) lose(i int, why error) {
	p := r.drop(i)
	r.session.lose(fmt.Errorf("partition %d, broker %q: %w", p.Partition, r.address, why), p)
}

// outside handles a position outside the log.
func (r *brokerReader) outside(ctx context.Context, i int) {
	p := r.partitions[i]
	log, sure := r.surelyOutside(ctx, p)
	if !sure {
		r.lose(i, kafka.OffsetOutOfRange)
		return
	}
	next, goOn := r.follower.Outside(ctx, int(p.Partition), p.Offset, log)
	if !goOn {
		r.drop(i)
		return
	}
	r.partitions[i].Offset = next
}

// surelyOutside asks the leader: the broker that answered may be behind.
func (r *brokerReader) surelyOutside(ctx context.Context, p broker.FetchPartition) (broker.LogBounds, bool) {
	partition := int(p.Partition)
	logs, err := r.follower.Cluster.AllLogs(ctx, r.follower.Topic, []int{partition})
	log := logs.Bounds[partition]
	return log, err == nil && logs.ID == r.follower.ID && (p.Offset < log.Start || p.Offset > log.End)
}

// A Buffer holds fetched chunks of the log until they are consumed.
type Buffer struct {
	Chunks chan Chunk // to receive from; pass each chunk to Hold
	size   int64
	room   *semaphore.Weighted // bytes
	held   *Chunk              // received, with records left
	newest time.Time           // time of the last record taken out
}

// NewBuffer returns a buffer for at most so many bytes.
func NewBuffer(bytes int) *Buffer {
	return &Buffer{Chunks: make(chan Chunk, 64), size: int64(bytes), room: semaphore.NewWeighted(int64(bytes))}
}

// roomOf returns the bytes that a chunk takes: at most the whole buffer.
func (in *Buffer) roomOf(c Chunk) int64 { return min(in.size, int64(c.Bytes)+1) }

// Receive adds a chunk once there is room.
func (in *Buffer) Receive(ctx context.Context, c Chunk) error {
	if err := in.room.Acquire(ctx, in.roomOf(c)); err != nil {
		return err
	}
	select {
	case in.Chunks <- c:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ready returns the next chunk without waiting; nil: none.
func (in *Buffer) Ready() *Chunk {
	if in.held == nil {
		select {
		case c := <-in.Chunks:
			in.held = &c
		default:
		}
	}
	return in.held
}

// Hold takes a chunk received from Chunks.
func (in *Buffer) Hold(c Chunk) *Chunk {
	in.held = &c
	return in.held
}

// Took removes the first n records of the held chunk. It reports
// whether the chunk is used up and its room free.
func (in *Buffer) Took(n int) (usedUp bool) {
	c := in.held
	if n > 0 {
		in.newest = c.Records[n-1].Time
	}
	if c.Records = c.Records[n:]; len(c.Records) > 0 {
		return false
	}
	in.room.Release(in.roomOf(*c))
	in.held = nil
	return true
}

// Late reports whether the next records are older than the given age.
func (in *Buffer) Late(age time.Duration) bool {
	return (in.held != nil || len(in.Chunks) > 0) && clock.Now().Sub(in.newest) > age
}
