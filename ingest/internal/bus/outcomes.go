package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/ingest/internal/outcomes"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
)

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
