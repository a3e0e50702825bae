package contracttest

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// Others are the modules besides the one under test.
type Others struct {
	t         testing.TB
	brokers   []string
	publisher *publisher.Publisher

	mu  sync.Mutex
	end contract.Positions
}

// New creates the topics that module does not own. weir.logs.v1 gets
// that many partitions.
func New(t testing.TB, module string, brokers []string, logPartitions int) *Others {
	t.Helper()
	theirs := slices.DeleteFunc(contract.Topics(logPartitions, 0), func(topic contract.Topic) bool { return topic.Owner == module })
	testenv.Must(t, topics.Ensure(t.Context(), brokers, theirs))
	publisher, err := publisher.New(publisher.Config{Brokers: brokers}, testenv.Logger(t))
	testenv.Must(t, err)
	t.Cleanup(func() { _ = publisher.Close() })
	return &Others{t: t, brokers: brokers, publisher: publisher, end: contract.Positions{}}
}

// PublishEvent publishes an event of a type under a key.
func (o *Others) PublishEvent(topic, eventType, key string, value any) {
	o.t.Helper()
	text, err := json.Marshal(value)
	testenv.Must(o.t, err)
	attributes := contract.Attributes{ID: uuid.NewString(), Type: eventType, Source: "weir/others", Time: time.Now()}
	o.Publish(topic, key, attributes.Headers(), text)
}

// PublishFact publishes a notification on its topic, as of a time.
func (o *Others) PublishFact(eventType string, at time.Time, fact any) {
	o.t.Helper()
	text, err := json.Marshal(fact)
	testenv.Must(o.t, err)
	var of struct{ Organization string }
	testenv.Must(o.t, json.Unmarshal(text, &of))
	topic := eventType[:strings.LastIndexByte(eventType, '.')]
	attributes := contract.Attributes{ID: uuid.NewString(), Type: eventType, Source: "weir/others", Time: at, Organization: of.Organization}
	o.Publish(topic, of.Organization, attributes.Headers(), text)
}

// Accept publishes accepted requests as ingest does.
func (o *Others) Accept(accepted ...contract.LogsAccepted) {
	o.t.Helper()
	messages := make([]*message.Message, len(accepted))
	for i, logs := range accepted {
		messages[i] = newMessage(logs.RecordKey(16), logs.Headers(), logs.Lines)
	}
	o.send(contract.TopicLogs, messages...)
}

// Publish publishes any record. A nil value is a tombstone of the key.
func (o *Others) Publish(topic, key string, headers map[string]string, value []byte) {
	o.t.Helper()
	o.send(topic, newMessage(key, headers, value))
}

func newMessage(key string, headers map[string]string, value []byte) *message.Message {
	m := message.NewMessage("", value)
	for name, value := range headers {
		m.Metadata.Set(name, value)
	}
	m.Metadata.Set(bus.KeyMetadata, key)
	return m
}

func (o *Others) send(topic string, messages ...*message.Message) {
	o.t.Helper()
	positions, err := o.publisher.PublishContext(context.WithoutCancel(o.t.Context()), topic, messages...)
	testenv.Must(o.t, err)
	if topic != contract.TopicLogs {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, p := range positions {
		o.end[p.Partition] = max(o.end[p.Partition], p.Offset+1)
	}
}

// End returns the end of weir.logs.v1: after the last record published here.
func (o *Others) End() contract.Positions {
	o.mu.Lock()
	defer o.mu.Unlock()
	return maps.Clone(o.end)
}

// Consume calls each with all records of a topic, one at a time,
// until the test ends.
func (o *Others) Consume(topic string, each func(bus.Record)) {
	o.t.Helper()
	reader := state.NewReader(state.Config{Brokers: o.brokers, Topic: topic, Apply: func(record bus.Record) error {
		each(record)
		return nil
	}}, testenv.Logger(o.t))
	testenv.Run(o.t, reader.Run)
}

// prefixes are those of secrets, by kind of credential.
var prefixes = map[string]string{
	contract.CredentialAPIKey:       identity.APIKeyPrefix,
	contract.CredentialServiceToken: identity.ServiceTokenPrefix,
	contract.CredentialSession:      identity.SessionPrefix,
}

// Issue publishes a credential, and returns its secret. By default it
// is active, in its first version, and its id is "id_" and the secret's
// first 8 digits.
func (o *Others) Issue(credential contract.Credential) (secret string) {
	o.t.Helper()
	var random [24]byte
	_, _ = rand.Read(random[:])
	digits := hex.EncodeToString(random[:])
	secret = prefixes[credential.Kind] + digits
	credential.ID = cmp.Or(credential.ID, "id_"+digits[:8])
	credential.State = cmp.Or(credential.State, contract.CredentialActive)
	credential.Version = cmp.Or(credential.Version, 1)
	o.PublishEvent(contract.TopicCredentials, contract.TypeCredentialChanged, contract.CredentialKey(secret), credential)
	return secret
}

// SignIn issues a session of a member of organization.
func (o *Others) SignIn(organization, role string) (secret string) {
	o.t.Helper()
	return o.Issue(contract.Credential{
		Kind: contract.CredentialSession, Organization: organization, Member: "mem_1", Scopes: []string{identity.RoleScope(role)},
	})
}

// Digest digests any text as ingest does.
func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
