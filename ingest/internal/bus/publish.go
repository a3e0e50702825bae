package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/fairshare"
)

// Source is the ce_source of ingest's events.
const Source = "weir/ingest"

// groupBytes is how many bytes of lines of one request go to the broker at once.
const groupBytes = 4 << 20

// Requests of more than one part publish their groups in turn, so
// that large requests fill at most a quarter of the publisher's
// buffer and small ones never wait for room.
const (
	largeGroups      = 4
	largeGroupsOfOne = 2 // of one organization
)

// LargeGroups is where large requests wait for their turn.
func LargeGroups() *fairshare.Limiter {
	return fairshare.NewLimiter(fairshare.Limits{Capacity: largeGroups, PerKey: largeGroupsOfOne})
}

// Publisher writes accepted requests to weir.logs.v1.
type Publisher struct {
	Bus    *publisher.Publisher
	Spread int                // over how many sub-keys a project is spread
	Large  *fairshare.Limiter // see LargeGroups
}

// Publish returns what became of the request once the brokers have
// acknowledged every part, or with an error. If parts are missing, the
// others have no effect: the client sends the whole request again. The
// parts' memory may be reused when it returns.
func (p *Publisher) Publish(ctx context.Context, accepted ingest.Acceptance) (outcome ingest.Outcome, err error) {
	for first := 0; first < len(accepted.Parts); {
		after := groupEnd(accepted.Parts, first)
		outcome, err = p.publishInTurn(ctx, accepted, first, after)
		if err != nil && after < len(accepted.Parts) {
			outcome.Status = ingest.Absent // what follows is never sent
		}
		if err != nil {
			return outcome, fmt.Errorf("cannot publish parts %d to %d of batch %s: %w", first+1, after, accepted.Batch, err)
		}
		first = after
	}
	return outcome, nil
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

// publishInTurn publishes the parts from first to before after; a group
// of a large request waits for its turn.
func (p *Publisher) publishInTurn(ctx context.Context, accepted ingest.Acceptance, first, after int) (ingest.Outcome, error) {
	if len(accepted.Parts) == 1 {
		return p.publishGroup(ctx, accepted, first, after)
	}
	turn, err := p.Large.Acquire(ctx, accepted.Organization, 1)
	if err != nil {
		return ingest.Outcome{}, err
	}
	defer turn.Release()
	return p.publishGroup(ctx, accepted, first, after)
}

// publishGroup publishes parts, and returns what became of the
// request if they are its last.
func (p *Publisher) publishGroup(ctx context.Context, accepted ingest.Acceptance, first, after int) (ingest.Outcome, error) {
	messages := make([]*message.Message, 0, after-first)
	for i := first; i < after; i++ {
		messages = append(messages, p.message(accepted, i))
	}
	positions, err := p.Bus.PublishContext(ctx, contract.TopicLogs, messages...)
	switch {
	case errors.Is(err, bus.ErrUnknownOutcome):
		return ingest.Outcome{Status: ingest.Uncertain}, err
	case err != nil:
		return ingest.Outcome{}, err
	}
	last := positions[len(positions)-1]
	if last.Offset < 0 {
		return ingest.Outcome{Status: ingest.Uncertain}, nil
	}
	return ingest.Outcome{Status: ingest.Published, Partition: last.Partition, Offset: last.Offset}, nil
}

func (p *Publisher) message(accepted ingest.Acceptance, index int) *message.Message {
	part := accepted.Parts[index]
	event := contract.LogsAccepted{
		Batch: accepted.Batch, Part: index + 1, Parts: len(accepted.Parts), First: part.First,
		Organization: accepted.Organization, Project: accepted.Project, Environment: accepted.Environment, Key: accepted.Key,
		Source: Source, Time: accepted.At,
		Entries: part.Count, Bytes: part.Bytes, Errors: part.Errors, RetentionDays: accepted.RetentionDays,
		Idempotency: accepted.Idempotency, Digest: accepted.Digest, Traceparent: accepted.Traceparent, Lines: part.Lines,
	}
	if len(accepted.Parts) > 1 {
		event.RequestBytes = accepted.Bytes
	}
	m := message.NewMessage(event.ID(), part.Lines)
	m.Metadata = event.Headers()
	m.Metadata[bus.KeyMetadata] = event.RecordKey(p.Spread)
	return m
}

// Outcomes publishes on weir.outcomes.v1 what became of requests.
type Outcomes struct {
	Bus   *publisher.Publisher
	Clock func() time.Time
}

// Counted publishes counts of requests.
func (o *Outcomes) Counted(ctx context.Context, all []outcomes.Counts) error {
	messages := make([]*message.Message, len(all))
	for i, c := range all {
		id := c.Process + "/" + c.Organization + "/" + strconv.FormatInt(c.Sequence, 10)
		messages[i] = o.message(id, contract.TypeRequestsCounted, c.Organization, requestsCounted(c))
	}
	return o.publish(ctx, messages)
}

// Refused publishes refusals by quota.
func (o *Outcomes) Refused(ctx context.Context, refusals []outcomes.Refusal) error {
	messages := make([]*message.Message, len(refusals))
	for i, r := range refusals {
		messages[i] = o.message(r.RequestID, contract.TypeQuotaRefused, r.Organization, contract.QuotaRefused(r))
	}
	return o.publish(ctx, messages)
}

func requestsCounted(c outcomes.Counts) contract.RequestsCounted {
	fact := contract.RequestsCounted{Organization: c.Organization, Process: c.Process, Sequence: c.Sequence, From: c.From, To: c.To}
	for _, count := range c.Counts {
		fact.Counts = append(fact.Counts, contract.RequestCount(count))
	}
	return fact
}

func (o *Outcomes) message(id, eventType, organization string, fact any) *message.Message {
	encoded, err := json.Marshal(fact)
	if err != nil {
		panic("BUG: cannot encode " + eventType + ": " + err.Error())
	}
	m := message.NewMessage(id, encoded)
	m.Metadata = contract.Attributes{ID: id, Type: eventType, Source: Source, Time: o.Clock(), Organization: organization}.Headers()
	m.Metadata[bus.KeyMetadata] = organization
	return m
}

func (o *Outcomes) publish(ctx context.Context, messages []*message.Message) error {
	if _, err := o.Bus.PublishContext(ctx, contract.TopicOutcomes, messages...); err != nil {
		return fmt.Errorf("cannot publish %d facts about requests: %w", len(messages), err)
	}
	return nil
}
