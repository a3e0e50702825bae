package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// Source is the ce_source of what ingest says.
const Source = "weir/ingest"

// groupBytes is how many bytes of lines go to the broker at once: a large request must not fill the publisher's buffer.
const groupBytes = 8 << 20

// Publisher writes accepted requests to weir.logs.v1.
type Publisher struct {
	Bus    *bus.Publisher
	Spread int // over how many sub-keys a project is spread
}

// Fate takes what became of the bytes of one request. The bytes of all calls add up to those of the request.
type Fate interface {
	Published(bytes int64, partition int, offset int64)
	Released(bytes int64) // surely not in the log
	Lost(bytes int64)     // in the log or not, nobody knows
}

// Publish returns nil once the brokers have acknowledged every part. An error means that any part may be missing: the
// client has to send the whole request again. The parts' memory may be reused as soon as it returns.
func (p *Publisher) Publish(ctx context.Context, accepted ingest.Acceptance, fate Fate) error {
	for first := 0; first < len(accepted.Parts); {
		after := groupEnd(accepted.Parts, first)
		if err := p.publishGroup(ctx, accepted, first, after, fate); err != nil {
			for _, part := range accepted.Parts[after:] {
				fate.Released(part.Bytes)
			}
			return fmt.Errorf("cannot publish parts %d to %d of batch %s: %w", first+1, after, accepted.Batch, err)
		}
		first = after
	}
	return nil
}

// groupEnd is the end of the group of parts that begins at first.
func groupEnd(parts []ingest.Part, first int) int {
	size := len(parts[first].Lines)
	after := first + 1
	for after < len(parts) && size+len(parts[after].Lines) <= groupBytes {
		size += len(parts[after].Lines)
		after++
	}
	return after
}

func (p *Publisher) publishGroup(ctx context.Context, accepted ingest.Acceptance, first, after int, fate Fate) error {
	messages := make([]*message.Message, 0, after-first)
	for i := first; i < after; i++ {
		messages = append(messages, p.message(accepted, i))
	}
	positions, err := p.Bus.PublishContext(ctx, contract.TopicLogs, messages...)
	for i, part := range accepted.Parts[first:after] {
		switch {
		case err == nil:
			fate.Published(part.Bytes, positions[i].Partition, positions[i].Offset)
		case len(messages) == 1 && !errors.Is(err, bus.ErrUnknownOutcome):
			fate.Released(part.Bytes)
		default:
			fate.Lost(part.Bytes)
		}
	}
	return err
}

func (p *Publisher) message(accepted ingest.Acceptance, index int) *message.Message {
	part := accepted.Parts[index]
	event := contract.LogsAccepted{
		Batch: accepted.Batch, Part: index + 1, Parts: len(accepted.Parts), First: part.First,
		Organization: accepted.Organization, Project: accepted.Project, Environment: accepted.Environment, Key: accepted.Key,
		Source: Source, Time: accepted.At,
		Entries: part.Count, Bytes: part.Bytes, Errors: part.Errors,
		Idempotency: accepted.Idempotency, Digest: accepted.Digest, Traceparent: accepted.Traceparent, Lines: part.Lines,
	}
	m := message.NewMessage(event.ID(), part.Lines)
	m.Metadata = event.Headers()
	m.Metadata[bus.KeyMetadata] = event.RecordKey(p.Spread)
	return m
}
