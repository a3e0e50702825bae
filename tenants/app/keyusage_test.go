package app_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// An ingestor publishes ingest's facts about keys.
type ingestor struct {
	t         *testing.T
	publisher *publisher.Publisher
	published int
}

func (w world) ingestor(t *testing.T) *ingestor {
	t.Helper()
	for _, topic := range contract.Topics(0, 0) {
		if topic.Name == contract.TopicIngest || topic.Name == contract.TopicAccounts {
			if err := topics.Ensure(t.Context(), w.brokers, []contract.Topic{topic}); err != nil {
				t.Fatal(err)
			}
		}
	}
	publisher, err := publisher.New(publisher.Config{Brokers: w.brokers}, testenv.Logger(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	return &ingestor{t: t, publisher: publisher}
}

func (i *ingestor) publish(topic, kind, key string, value any) {
	i.t.Helper()
	encoded, err := json.Marshal(value)
	if err != nil {
		i.t.Fatal(err)
	}
	i.published++
	m := message.NewMessage(fmt.Sprint(kind, "/", i.published), encoded)
	m.Metadata = contract.Attributes{ID: m.UUID, Type: kind, Source: "weir/ingest", Time: time.Now()}.Headers()
	m.Metadata[bus.KeyMetadata] = key
	if _, err := i.publisher.PublishContext(i.t.Context(), topic, m); err != nil {
		i.t.Fatal(err)
	}
}

func (i *ingestor) used(used contract.KeyUsed) {
	i.publish(contract.TopicIngest, contract.TypeKeyUsed, used.APIKey, used)
}

func (i *ingestor) exposed(a tenant, how string) {
	i.publish(contract.TopicIngest, contract.TypeKeyExposed, a.key, contract.KeyExposed{
		Organization: a.organization, Project: a.project, APIKey: a.key, How: how, At: time.Now(), Address: "192.0.2.7"})
}

// awaitKey waits until a key is shown as expected.
func (p *process) awaitKey(t *testing.T, key string, holds func(answer) bool) (got answer) {
	t.Helper()
	testenv.Eventually(t, timeout, func() error {
		if got = p.must(t, 200, "GET", "/v1/api-keys/"+key, ""); !holds(got) {
			return fmt.Errorf("%w: %s", errNotYet, got.text)
		}
		return nil
	})
	return got
}

func usage(a answer) map[string]any {
	usage, _ := a.body["usage"].(map[string]any)
	return usage
}

// Published uses of keys add up, once per record, even across a restart;
// unknown ones change nothing, and impossible ones stop nothing.
func TestKeyUsageAddsUp(t *testing.T) {
	w := newWorld(t)
	i, p := w.ingestor(t), w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	at := time.Now().UTC().Truncate(time.Millisecond)
	first := contract.KeyUsed{Organization: acme.organization, Project: acme.project, APIKey: acme.key, Accepted: 3, Rejected: 1,
		FirstAcceptedAt: &at, LastUsedAt: at, Address: "192.0.2.7", Client: "checkout/1"}
	i.used(first)
	p.awaitKey(t, acme.key, func(a answer) bool { return usage(a)["accepted"] == 3.0 })
	rotated := p.must(t, 201, "POST", "/v1/api-keys/"+acme.key+"/rotate", "")
	later := time.Now().Add(time.Second).UTC()
	second := first
	second.Accepted, second.Rejected, second.Refused, second.FirstAcceptedAt, second.LastUsedAt, second.Address = 2, 4, 1, &later, later, "192.0.2.8"
	i.used(second)
	i.used(contract.KeyUsed{Organization: acme.organization, Project: acme.project, APIKey: acme.key, Read: 6, LastUsedAt: at}) // before the rotation, published late
	i.used(contract.KeyUsed{Organization: acme.organization, Project: acme.project, APIKey: acme.key, Read: 5, LastUsedAt: later, Address: "192.0.2.8", Client: "checkout/1"})
	for _, nobody := range []contract.KeyUsed{
		{Organization: "org_other", APIKey: acme.key, Accepted: 100, LastUsedAt: later}, // another's name on our key
		{Organization: acme.organization, APIKey: "key_other", Accepted: 100, LastUsedAt: later},
		{Organization: "*", APIKey: acme.key, Accepted: 100, LastUsedAt: later},
		{Organization: acme.organization, APIKey: acme.key, Accepted: -100, LastUsedAt: later},
		{Organization: acme.organization, APIKey: acme.key, Read: -100, LastUsedAt: later},
	} {
		i.used(nobody)
	}
	i.publish(contract.TopicIngest, contract.TypeKeyUsed, acme.key, "no usage")
	i.publish(contract.TopicIngest, "weir.ingest.v1.of_the_future", acme.key, "anything")
	third := first
	third.APIKey, third.Accepted = rotated.get("id"), 7
	i.used(third)
	p.awaitKey(t, rotated.get("id"), func(a answer) bool { return usage(a)["accepted"] == 7.0 })
	p.stop()
	p = w.start(t, operatorToken)
	i.used(third)
	p.awaitKey(t, rotated.get("id"), func(a answer) bool { return usage(a)["accepted"] == 14.0 })
	got := p.must(t, 200, "GET", "/v1/api-keys/"+acme.key, "")
	want := map[string]any{
		"accepted": 5, "rejected": 5, "refused": 1, "read": 11, "since_rotation": map[string]any{"accepted": 2, "rejected": 4, "read": 5},
		"first_event_at": at, "last_used_at": later.Truncate(time.Microsecond), "last_used_from_address": "192.0.2.8", "last_used_by_client": "checkout/1",
	}
	if text(usage(got)) != text(want) {
		t.Errorf("usage is %s, want %s", text(usage(got)), text(want))
	}
	if users, _ := got.body["recent_users"].([]any); len(users) != 3 || users[0].(map[string]any)["address"] != "192.0.2.8" {
		t.Errorf("it was used by %v, want three, the last one first", users)
	}
}

// A key received in plaintext is flagged, and revoked everywhere by
// the organization's policy; a proxy's report never revokes anything.
func testExposedKeys(t *testing.T, p *process) {
	i, n := p.world.ingestor(t), p.world.follow(t)
	acme, other := p.tenant(t, "Acme"), p.tenant(t, "Other")
	policy := "/v1/organizations/" + acme.organization + "/security-policy"
	expect(t, p.must(t, 200, "GET", policy, ""), map[string]any{
		"organization": acme.organization, "leaked_keys": "notify", "plain_http_keys": "flag", "passwords": "allowed", "set_at": nil})
	i.exposed(acme, contract.ExposedPlainHTTP)
	kinds := func(a answer) (kinds string) {
		exposures, _ := a.body["exposures"].([]any)
		for _, exposure := range exposures {
			kinds += fmt.Sprint(exposure.(map[string]any)["kind"], " ")
		}
		return kinds
	}
	p.awaitKey(t, acme.key, func(a answer) bool { return kinds(a) == "plain_http " && a.get("state") == "active" })

	expect(t, p.must(t, 200, "PUT", policy, `{"leaked_keys":"notify","plain_http_keys":"revoke"}`), map[string]any{
		"organization": acme.organization, "leaked_keys": "notify", "plain_http_keys": "revoke", "passwords": "allowed", "set_at": utc})
	i.exposed(acme, contract.ExposedForwarded)
	i.exposed(other, contract.ExposedPlainHTTP)
	i.publish(contract.TopicIngest, contract.TypeKeyExposed, acme.key, contract.KeyExposed{
		Organization: other.organization, APIKey: acme.key, How: contract.ExposedPlainHTTP}) // another's name on our key
	p.awaitKey(t, acme.key, func(a answer) bool { return kinds(a) == "plain_http forwarded_proto " && a.get("state") == "active" })
	p.awaitKey(t, other.key, func(a answer) bool { return kinds(a) == "plain_http " && a.get("state") == "active" })
	n.awaitLookup(t, acme.secret, nil)

	i.exposed(acme, contract.ExposedPlainHTTP)
	got := p.awaitKey(t, acme.key, func(a answer) bool { return a.get("state") == "revoked" })
	if got.get("revoked_reason") != "arrived over plain HTTP (security policy)" {
		t.Errorf("revoked for %q", got.get("revoked_reason"))
	}
	n.awaitLookup(t, acme.secret, identity.ErrRevoked)
	n.awaitLookup(t, other.secret, nil)
}
