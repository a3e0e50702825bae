package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants/internal/retention"
)

// Forget publishes tombstones of credentials that ended
// long ago: no older state of them can still be published.
func Forget(to *publisher.Publisher, clock func() time.Time) retention.Forget {
	return func(ctx context.Context, credentials []retention.Credential) error {
		messages := make([]*message.Message, len(credentials))
		for i, credential := range credentials {
			messages[i] = forgotten(credential, clock())
		}
		if _, err := to.PublishContext(ctx, contract.TopicCredentials, messages...); err != nil {
			return fmt.Errorf("cannot forget %d credentials: %w", len(credentials), err)
		}
		return nil
	}
}

// forgotten is a tombstone, as for sessions; see SessionTombstones.
func forgotten(credential retention.Credential, at time.Time) *message.Message {
	m := message.NewMessage(contract.TypeCredentialChanged+"/"+credential.ID+"/forgotten", nil)
	for name, value := range (contract.Attributes{
		ID: m.UUID, Type: contract.TypeCredentialChanged, Source: Source, Time: at, Organization: credential.Organization,
	}).Headers() {
		m.Metadata.Set(name, value)
	}
	m.Metadata.Set(weirbus.KeyMetadata, credential.Hash)
	return m
}
