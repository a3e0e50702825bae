package publisher

import (
	"fmt"
	"time"

	kafka "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
	"github.com/weirlog/weir/shared/bus/internal/clock"
)

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
		p.refreshSoon()
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
	if p.ctx.Err() != nil {
		return // Close settles the rest
	}
	if b := s.batch; b != nil && !clock.Now().Before(b.Deadline) {
		p.fail(s.partition, b, cause)
		return
	}
	if failures > 1 {
		p.refreshSoon()
		p.logger.Debug("publishing again", "topic", s.partition.topic, "partition", s.partition.index, "failures", failures, "error", cause)
	}
	time.AfterFunc(clock.Backoff(failures, 10*time.Millisecond, clock.LongestAbsence), func() { p.schedule(s.partition) })
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
	p.budget.Give(reserved)
	p.pending.Add(-count)
}

// rest ends the partition's turn, or schedules it again if it has more.
func (p *Publisher) rest(part *partition) {
	if part.rest() {
		p.schedule(part)
	}
}

// unknown wraps cause as an unknown outcome.
func unknown(topic string, cause error) error {
	return fmt.Errorf("it is unknown whether a message for %q was written: %w (%w)", topic, bus.ErrUnknownOutcome, cause)
}
