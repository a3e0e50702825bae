package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// KeyNews writes what ingest learns of API keys to weir.ingest.v1.
type KeyNews struct {
	Bus    *bus.Publisher
	NewID  func() string // unique
	Clock  func() time.Time
	Logger *slog.Logger
}

// Used says how a key was used. An error means that it was not said.
func (n *KeyNews) Used(ctx context.Context, used contract.KeyUsed) error {
	err := n.publish(ctx, contract.TypeKeyUsed, used.Organization, used.APIKey, used)
	if errors.Is(err, bus.ErrUnknownOutcome) {
		n.Logger.Warn("some uses of a key are perhaps not told", slog.String("key", used.APIKey), slog.String("error", err.Error()))
		return nil
	}
	return err
}

// Exposed says that a key was exposed. An error means that it was not said, or perhaps not: saying it again does no harm.
func (n *KeyNews) Exposed(ctx context.Context, exposed contract.KeyExposed) error {
	return n.publish(ctx, contract.TypeKeyExposed, exposed.Organization, exposed.APIKey, exposed)
}

func (n *KeyNews) publish(ctx context.Context, kind, organization, key string, value any) error {
	encoded, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", kind, err)
	}
	m := message.NewMessage(n.NewID(), encoded)
	m.Metadata = contract.Attributes{ID: m.UUID, Type: kind, Source: source, Time: n.Clock(), Organization: organization}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	if _, err = n.Bus.PublishContext(ctx, contract.TopicIngest, m); err != nil {
		return fmt.Errorf("cannot say %s of key %q: %w", kind, key, err)
	}
	return nil
}
