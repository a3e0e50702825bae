package apache

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Rights that can be revoked.
type Rights = kmsg.ACLOperation

// All of them, and those needed for writing.
const (
	AllRights = kmsg.ACLOperationAny
	Writing   = kmsg.ACLOperationWrite
)

// Revoke takes rights on a topic from a principal, such as User:ledger.
func (b *Broker) Revoke(ctx context.Context, topic, principal string, rights Rights) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Addr()), kgo.DisableClientMetrics())
	if err != nil {
		return fmt.Errorf("cannot reach the node: %w", err)
	}
	defer client.Close()
	request, filter := kmsg.NewPtrDeleteACLsRequest(), kmsg.NewDeleteACLsRequestFilter()
	filter.ResourceType, filter.ResourceName, filter.ResourcePatternType = kmsg.ACLResourceTypeTopic, &topic, kmsg.ACLResourcePatternTypeLiteral
	filter.Principal, filter.Operation, filter.PermissionType = &principal, rights, kmsg.ACLPermissionTypeAny
	request.Filters = append(request.Filters, filter)
	if _, err := request.RequestWith(ctx, client); err != nil {
		return fmt.Errorf("cannot take the rights of %s on %s: %w", principal, topic, err)
	}
	return nil
}
