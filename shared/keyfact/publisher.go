package keyfact

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
)

// A Publisher publishes what one service has seen of API keys.
type Publisher struct {
	Bus    *publisher.Publisher
	Source string // ce_source of the service, such as weir/ledger
	Clock  func() time.Time
	Logger *slog.Logger
}

// Used publishes a key's uses. An error means that they were not
// published. With an unknown outcome the uses are dropped: counting
// them twice would be wrong.
func (p *Publisher) Used(ctx context.Context, used contract.KeyUsed) error {
	err := p.publish(ctx, contract.TypeKeyUsed, used.Organization, used.APIKey, used)
	if errors.Is(err, bus.ErrUnknownOutcome) {
		p.Logger.Warn("some uses of a key are perhaps not published", slog.String("key", used.APIKey), slog.String("error", err.Error()))
		return nil
	}
	return err
}

// Exposed publishes that a key was exposed. After an error it may be
// unpublished; publishing it again is harmless.
func (p *Publisher) Exposed(ctx context.Context, exposed contract.KeyExposed) error {
	return p.publish(ctx, contract.TypeKeyExposed, exposed.Organization, exposed.APIKey, exposed)
}

func (p *Publisher) publish(ctx context.Context, eventType, organization, key string, fact any) error {
	encoded, err := json.Marshal(fact)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", eventType, err)
	}
	m := message.NewMessage(uuid.NewString(), encoded)
	m.Metadata = contract.Attributes{ID: m.UUID, Type: eventType, Source: p.Source, Time: p.Clock(), Organization: organization}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	if _, err = p.Bus.PublishContext(ctx, contract.TopicIngest, m); err != nil {
		return fmt.Errorf("cannot publish %s of key %q: %w", eventType, key, err)
	}
	return nil
}
