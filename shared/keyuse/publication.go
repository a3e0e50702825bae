package keyuse

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

// A Publication says on weir.ingest.v1 how API keys are used.
type Publication struct {
	Bus    *publisher.Publisher
	Source string // ce_source of the service that says so, such as weir/ingest
	Clock  func() time.Time
	Logger *slog.Logger
}

// Used says how a key was used. An error means that it was not said.
func (p *Publication) Used(ctx context.Context, used contract.KeyUsed) error {
	err := p.publish(ctx, used)
	if errors.Is(err, bus.ErrUnknownOutcome) {
		p.Logger.Warn("some uses of a key are perhaps not told", slog.String("key", used.APIKey), slog.String("error", err.Error()))
		return nil
	}
	return err
}

func (p *Publication) publish(ctx context.Context, used contract.KeyUsed) error {
	encoded, err := json.Marshal(used)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", contract.TypeKeyUsed, err)
	}
	m := message.NewMessage(uuid.NewString(), encoded)
	m.Metadata = contract.Attributes{
		ID: m.UUID, Type: contract.TypeKeyUsed, Source: p.Source, Time: p.Clock(), Organization: used.Organization,
	}.Headers()
	m.Metadata[bus.KeyMetadata] = used.APIKey
	if _, err = p.Bus.PublishContext(ctx, contract.TopicIngest, m); err != nil {
		return fmt.Errorf("cannot say how key %q was used: %w", used.APIKey, err)
	}
	return nil
}
