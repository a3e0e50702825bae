package publisher

import (
	"context"
	"fmt"
	"sync"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/broker"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

// requestBytes is the size from which on a request takes no more partitions.
const requestBytes = 4 << 20

// link queues the ready partitions that one broker leads, for workers
// that each send one request at a time. Partitions that become ready
// while all workers are busy share the next request.
type link struct {
	id int32

	mu      sync.Mutex
	work    *sync.Cond
	address string
	ready   []*partition
	closed  bool
}

func newLink(id int32, address string) *link {
	l := &link{id: id, address: address}
	l.work = sync.NewCond(&l.mu)
	return l
}

// push queues a partition. A closed link ignores it.
func (l *link) push(p *partition) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.closed {
		l.ready = append(l.ready, p)
		l.work.Signal()
	}
}

// pull waits for partitions and takes as many as fit into one request;
// nil: the link is closed.
func (l *link) pull() []*partition {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.ready) == 0 && !l.closed {
		l.work.Wait()
	}
	if l.closed {
		return nil
	}
	n, bytes := 0, 0
	for n < len(l.ready) && bytes < requestBytes {
		bytes += l.ready[n].nextBytes()
		n++
	}
	taken := append([]*partition(nil), l.ready[:n]...)
	l.ready = append(l.ready[:0], l.ready[n:]...)
	if len(l.ready) > 0 {
		l.work.Signal()
	}
	return taken
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.work.Broadcast()
}

func (l *link) at() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.address
}

func (l *link) move(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.address = address
}

// worker sends one link's ready partitions over one connection, until
// the link is closed.
type worker struct {
	publisher *Publisher
	link      *link
	conn      *broker.Connection
	address   string // of conn
}

func (w *worker) run() {
	defer w.hangUp()
	for {
		partitions := w.link.pull()
		if partitions == nil {
			return
		}
		w.send(partitions)
	}
}

// shipment is a batch in a request.
type shipment struct {
	partition *partition
	batch     *batch.Batch
}

func (w *worker) send(partitions []*partition) {
	shipments, err := w.load(partitions)
	if err == nil && len(shipments) > 0 {
		err = w.connect()
	}
	if err != nil {
		for _, s := range shipments {
			w.publisher.retry(s, err)
		}
		return
	}
	if len(shipments) > 0 {
		w.ship(shipments)
	}
}

// load takes one batch of each partition that this broker still leads.
// After an error the shipments are not sealed.
func (w *worker) load(partitions []*partition) ([]shipment, error) {
	who, err := w.publisher.identity()
	shipments := make([]shipment, 0, len(partitions))
	for _, part := range partitions {
		w.publisher.expire(part)
		if part.leader.Load() != w.link.id {
			w.publisher.routes.schedule(part)
			continue
		}
		if err != nil {
			shipments = append(shipments, shipment{partition: part})
			continue
		}
		if b := w.take(part, who); b != nil {
			shipments = append(shipments, shipment{part, b})
		}
	}
	return shipments, err
}

// take returns the partition's next batch, sealed. Without one, the
// partition's turn ends.
func (w *worker) take(part *partition, who batch.Identity) *batch.Batch {
	b, sequence, fresh := part.take(who)
	if b == nil {
		w.publisher.rest(part)
	}
	if fresh {
		b.Seal(who, sequence, w.publisher.codecFor(b))
	}
	return b
}

func (w *worker) connect() (err error) {
	address := w.link.at()
	if w.conn != nil && w.address == address {
		return nil
	}
	w.hangUp()
	w.conn, err = broker.Connect(w.publisher.workers.ctx, w.publisher.cluster.Dialer, address)
	w.address = address
	return err
}

func (w *worker) hangUp() {
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

// ship sends one request and passes its answer to every batch in it.
func (w *worker) ship(shipments []shipment) {
	timeout := w.publisher.cfg.RequestTimeout
	request := &production{clientID: w.publisher.cluster.Dialer.ClientID, shipments: shipments, timeout: timeout, socket: w.conn.Socket}
	if _, err := w.conn.RoundTrip(w.publisher.workers.ctx, timeout, request); err != nil {
		w.hangUp()
		for _, s := range shipments {
			s.batch.Doubtful = true // from here on it may be in the log
			w.publisher.retry(s, err)
		}
		return
	}
	for _, s := range shipments {
		w.publisher.answered(s, request.answerTo(s))
	}
}

// identity returns the producer's identity, and asks the brokers for
// a missing one.
func (p *Publisher) identity() (batch.Identity, error) {
	return p.producer.get(func() (batch.Identity, error) {
		ctx, cancel := context.WithTimeout(p.workers.ctx, p.cfg.RequestTimeout)
		defer cancel()
		return p.cluster.NewIdentity(ctx)
	})
}

// verdict is the meaning of an answer to a batch.
type verdict int

const (
	written  verdict = iota
	resend           // not written; the same bytes may succeed, perhaps elsewhere
	doubtful         // perhaps written; the same bytes get the same answer or succeed
	mistrust         // not written now: the broker refuses the producer or the sequence
	refused          // not written, now or later
)

// verdictOf classifies the error codes of Produce
// (https://kafka.apache.org/protocol#protocol_error_codes). Unlisted
// ones are doubtful, which only costs retries.
func verdictOf(code kafka.Error) verdict {
	switch code {
	case 0, kafka.DuplicateSequenceNumber: // a duplicate is written, only its offset is unknown
		return written
	case kafka.UnknownTopicOrPartition, kafka.LeaderNotAvailable, kafka.NotLeaderForPartition, kafka.ReplicaNotAvailable,
		kafka.NotEnoughReplicas, kafka.FencedLeaderEpoch, kafka.UnknownLeaderEpoch, kafka.ThrottlingQuotaExceeded,
		kafka.InvalidMessage: // the batch was damaged in transit: our bytes are right
		return resend
	case kafka.OutOfOrderSequenceNumber, kafka.InvalidProducerEpoch, kafka.InvalidProducerIDMapping, kafka.UnknownProducerId, kafka.ProducerFenced:
		return mistrust
	case kafka.MessageSizeTooLarge, kafka.RecordListTooLarge, kafka.InvalidTopic, kafka.InvalidRequiredAcks, kafka.InvalidTimestamp,
		kafka.TopicAuthorizationFailed, kafka.ClusterAuthorizationFailed, kafka.UnsupportedVersion, kafka.UnsupportedForMessageFormat,
		kafka.PolicyViolation, kafka.UnsupportedCompressionType, kafka.InvalidRecord, kafka.InvalidRequest:
		return refused
	default:
		return doubtful
	}
}

// diskPatience is how long a partition's batches are sent again while its
// leader's disk refuses them; after that each is sent once, until the disk
// takes one. Another leader is elected within it, and a disk that is full
// stays so for longer than a caller should wait.
const diskPatience = 2 * time.Second

// answered handles a broker's answer to a batch.
func (p *Publisher) answered(s shipment, a produceAnswer) {
	code := a.code
	switch verdictOf(code) {
	case written:
		s.partition.accepted()
		p.settle(s, a.offset, nil)
	case resend:
		p.routes.refreshSoon()
		p.retry(s, code)
	case doubtful:
		s.batch.Doubtful = true
		if code == kafka.KafkaStorageError && s.partition.refusedFor(clock.Now()) > diskPatience {
			p.fail(s.partition, s.batch, code)
			return
		}
		p.retry(s, code)
	case mistrust:
		p.mistrusted(s, code)
	case refused:
		p.fail(s.partition, s.batch, refusal(s, code))
	}
}

// refusal returns the error of a final answer, with a remedy for the caller.
func refusal(s shipment, code kafka.Error) error {
	switch code {
	case kafka.MessageSizeTooLarge, kafka.RecordListTooLarge:
		return fmt.Errorf("%w: a batch of %d bytes: %w", bus.ErrTooLarge, s.batch.Size(), code)
	case kafka.InvalidTimestamp:
		return fmt.Errorf("the broker's clock is too far from this machine's, which says %s: set them right, or let the topic take such records "+
			"(message.timestamp.after.max.ms, message.timestamp.before.max.ms): %w", time.UnixMilli(s.batch.MaxTime).UTC().Format(time.RFC3339), code)
	}
	return code
}

// mistrusted handles a broker that refuses our producer id or sequence.
// A batch with an unanswered attempt has an unknown outcome; any other
// is sent under a new identity.
func (p *Publisher) mistrusted(s shipment, code kafka.Error) {
	p.logger.Warn("broker does not accept the producer, taking a new one",
		"topic", s.partition.topic, "partition", s.partition.index, "producer", s.batch.Producer.ID, "error", code)
	p.producer.renounce(s.batch.Producer)
	if s.batch.Doubtful {
		p.fail(s.partition, s.batch, code)
		return
	}
	s.partition.unseal()
	p.retry(shipment{partition: s.partition}, code)
}

// retry sends the partition's next batch again after a pause, or gives
// up when its time is over.
func (p *Publisher) retry(s shipment, cause error) {
	failures := s.partition.failed()
	if p.workers.ctx.Err() != nil {
		return // Close settles the rest
	}
	if b := s.batch; b != nil && !clock.Now().Before(b.Deadline) {
		p.fail(s.partition, b, cause)
		return
	}
	if failures > 1 {
		p.routes.refreshSoon()
		p.logger.Debug("publishing again", "topic", s.partition.topic, "partition", s.partition.index, "failures", failures, "error", cause)
	}
	time.AfterFunc(clock.Backoff(failures, 10*time.Millisecond, clock.LongestAbsence), func() { p.routes.schedule(s.partition) })
}

// fail settles a batch that is not sent again. A batch surely not written
// returns its sequence numbers; otherwise the partition needs a new identity.
func (p *Publisher) fail(part *partition, b *batch.Batch, cause error) {
	if b.Doubtful {
		p.producer.renounce(b.Producer)
		p.settle(shipment{part, b}, -1, unknown(part.topic, cause))
		return
	}
	if b.Sealed {
		part.rewind(b)
	}
	p.settle(shipment{part, b}, -1, fmt.Errorf("cannot publish to %q, partition %d: %w", part.topic, part.index, cause))
}

// expire settles the batches whose delivery timeout is over.
func (p *Publisher) expire(part *partition) {
	for _, b := range part.takeExpired(clock.Now()) {
		p.fail(part, b, fmt.Errorf("%w (%v)", bus.ErrNotDelivered, p.cfg.DeliveryTimeout))
	}
}

// settle reports to the callers and lets the partition send its next batch.
func (p *Publisher) settle(s shipment, offset int64, err error) {
	reserved, count := s.batch.Reserved, s.batch.Count
	p.metrics.settled(count, s.batch.Size(), err)
	s.batch.Settle(offset, err)
	if s.partition.finish(s.batch) {
		p.rest(s.partition)
	}
	p.budget.give(reserved)
	p.gate.pending.Add(-count)
}

// rest ends the partition's turn, or schedules it again if it has more.
func (p *Publisher) rest(part *partition) {
	if part.rest() {
		p.routes.schedule(part)
	}
}

// unknown wraps cause as an unknown outcome.
func unknown(topic string, cause error) error {
	return fmt.Errorf("it is unknown whether a message for %q was written: %w (%w)", topic, bus.ErrUnknownOutcome, cause)
}
