package cluster

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"fmt"
	"maps"
	"slices"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/alteruserscramcredentials"
	"github.com/segmentio/kafka-go/protocol/createacls"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

// SetPasswords creates users who sign in by SCRAM-SHA-512, or changes
// their passwords. It sends hashes, which are enough to sign in: call
// it over TLS or on the broker's machine.
func SetPasswords(ctx context.Context, brokers []string, dialer *bus.Dialer, passwords map[string]string) error {
	c := broker.NewCluster(brokers, dialer)
	request := &alteruserscramcredentials.Request{}
	for _, user := range slices.Sorted(maps.Keys(passwords)) {
		made, err := credential(user, passwords[user])
		if err != nil {
			return fmt.Errorf("cannot hash the password of %q: %w", user, err)
		}
		request.Upsertions = append(request.Upsertions, made)
	}
	answer, err := c.Ask(ctx, request)
	if err != nil {
		return fmt.Errorf("cannot make users at the brokers: %w", err)
	}
	for _, result := range answer.(*alteruserscramcredentials.Response).Results {
		if result.ErrorCode != 0 {
			return fmt.Errorf("cannot make user %q at the brokers: %w: %s", result.User, kafka.Error(result.ErrorCode), result.ErrorMessage)
		}
	}
	return nil
}

// credential returns how a broker stores a user, hashed in the broker's
// default number of rounds.
func credential(user, password string) (made alteruserscramcredentials.RequestUserScramCredentialsUpsertion, err error) {
	const sha512Mechanism, rounds, saltBytes = 2, 4096, 16
	made.Name, made.Mechanism, made.Iterations, made.Salt = user, sha512Mechanism, rounds, make([]byte, saltBytes)
	_, _ = rand.Read(made.Salt) // never fails
	made.SaltedPassword, err = pbkdf2.Key(sha512.New, password, made.Salt, rounds, sha512.Size)
	return made, err
}

// A Permission allows a principal operations on a topic, a consumer group or
// the cluster.
type Permission struct {
	Principal  string // such as User:ingest
	Group      bool
	Cluster    bool // it has no name
	Name       string
	Operations Operations
}

// Permit creates ACLs for any client address. Existing ones stay.
func Permit(ctx context.Context, brokers []string, dialer *bus.Dialer, permissions []Permission) error {
	c := broker.NewCluster(brokers, dialer)
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
	const ofTopic, ofGroup, ofCluster, literal, allow = 2, 3, 4, 3, 3
	kind, name := int8(ofTopic), p.Name
	switch {
	case p.Group:
		kind = ofGroup
	case p.Cluster:
		kind, name = ofCluster, "kafka-cluster"
	}
	for _, operation := range operations {
		if p.Operations&(1<<operation.number) != 0 {
			rules = append(rules, createacls.RequestACLs{
				ResourceType: kind, ResourceName: name, ResourcePatternType: literal, Principal: p.Principal, Host: "*",
				Operation: operation.number, PermissionType: allow,
			})
		}
	}
	return rules
}

// Operations are what a user may do with a topic or group, a bit each,
// by Kafka's numbers.
type Operations int32

// The operations that Weir needs. In Kafka, Read and Write include Describe.
const (
	Read            Operations = 1 << 3
	Write           Operations = 1 << 4
	Create          Operations = 1 << 5
	Delete          Operations = 1 << 6 // of a topic, also of its records
	Describe        Operations = 1 << 8
	DescribeConfigs Operations = 1 << 10
)

// unasked is the answer of a broker that reports no operations.
const unasked Operations = -1 << 31

// operations are all, by Kafka's names and numbers.
var operations = []struct {
	name   string
	number int8
}{{"Read", 3}, {"Write", 4}, {"Create", 5}, {"Delete", 6}, {"Describe", 8}, {"DescribeConfigs", 10}}

// Allow reports whether some operations are all allowed, or the
// brokers report none.
func (o Operations) Allow(some Operations) bool { return o == unasked || o&some == some }

// Names returns their names in Kafka's tools.
func (o Operations) Names() (names []string) {
	for _, operation := range operations {
		if o&(1<<operation.number) != 0 {
			names = append(names, operation.name)
		}
	}
	return names
}
