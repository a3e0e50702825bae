package cluster

import (
	"context"
	"fmt"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/createacls"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

// A Permission allows a principal operations on a topic or a consumer group.
type Permission struct {
	Principal  string // such as User:ingest
	Group      bool
	Name       string
	Operations Operations
}

// Permit creates ACLs for any client address. Existing ones stay.
func Permit(ctx context.Context, brokers []string, dialer *bus.Dialer, permissions []Permission) error {
	c := broker.NewCluster(brokers, dialer)
	defer c.Close()
	request := &createacls.Request{}
	for _, p := range permissions {
		request.Creations = append(request.Creations, p.rules()...)
	}
	answer, err := c.Ask(ctx, request)
	if err != nil {
		return fmt.Errorf("cannot give rights at the brokers: %w", err)
	}
	for i, result := range answer.(*createacls.Response).Results {
		if result.ErrorCode != 0 {
			rule := request.Creations[i]
			return fmt.Errorf("cannot give %s a right on %q: %w: %s", rule.Principal, rule.ResourceName, kafka.Error(result.ErrorCode), result.ErrorMessage)
		}
	}
	return nil
}

// rules returns the ACLs, one for each operation.
func (p Permission) rules() (rules []createacls.RequestACLs) {
	const ofTopic, ofGroup, literal, allow = 2, 3, 3, 3
	kind := int8(ofTopic)
	if p.Group {
		kind = ofGroup
	}
	for _, operation := range operations {
		if p.Operations&(1<<operation.number) != 0 {
			rules = append(rules, createacls.RequestACLs{
				ResourceType: kind, ResourceName: p.Name, ResourcePatternType: literal, Principal: p.Principal, Host: "*",
				Operation: operation.number, PermissionType: allow,
			})
		}
	}
	return rules
}
