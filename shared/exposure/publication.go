package exposure

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
)

// A Publication says on weir.ingest.v1 which keys were exposed.
type Publication struct {
	Bus    *publisher.Publisher
	Source string // ce_source of the service that says so, such as weir/ledger
	Clock  func() time.Time
}

// Say says that a key was exposed. An error means that it was not said, or perhaps not: saying it again does no harm.
func (p Publication) Say(ctx context.Context, exposed contract.KeyExposed) error {
	encoded, err := json.Marshal(exposed)
	if err != nil {
		return fmt.Errorf("cannot encode %s: %w", contract.TypeKeyExposed, err)
	}
	m := message.NewMessage(uuid.NewString(), encoded)
	m.Metadata = contract.Attributes{
		ID: m.UUID, Type: contract.TypeKeyExposed, Source: p.Source, Time: p.Clock(), Organization: exposed.Organization,
	}.Headers()
	m.Metadata[bus.KeyMetadata] = exposed.APIKey
	if _, err = p.Bus.PublishContext(ctx, contract.TopicIngest, m); err != nil {
		return fmt.Errorf("cannot say that key %q was exposed: %w", exposed.APIKey, err)
	}
	return nil
}
