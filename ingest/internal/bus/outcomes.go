package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

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
func (o *Outcomes) Counted(ctx context.Context, facts []contract.RequestsCounted) error {
	messages := make([]*message.Message, len(facts))
	for i := range facts {
		id := facts[i].Process + "/" + facts[i].Organization + "/" + strconv.FormatInt(facts[i].Sequence, 10)
		messages[i] = o.message(id, contract.TypeRequestsCounted, facts[i].Organization, facts[i])
	}
	return o.publish(ctx, messages)
}

// Refused publishes refusals by quota.
func (o *Outcomes) Refused(ctx context.Context, facts []contract.QuotaRefused) error {
	messages := make([]*message.Message, len(facts))
	for i := range facts {
		messages[i] = o.message(facts[i].RequestID, contract.TypeQuotaRefused, facts[i].Organization, facts[i])
	}
	return o.publish(ctx, messages)
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
