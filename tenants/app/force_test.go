package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/testenv"
)

// A neighbour is another service, which reads only what tenants publishes.
type neighbour struct {
	*identity.Credentials
	mu      sync.Mutex
	records []bus.Record
}

func (n *neighbour) keep(record bus.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.records = append(n.records, record)
}

func (n *neighbour) kept() []bus.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.records)
}

// follow starts a neighbour and waits until it has read the topics.
func (w world) follow(t *testing.T) *neighbour {
	t.Helper()
	n := &neighbour{Credentials: identity.NewCredentials(time.Now)}
	for _, topic := range []string{contract.TopicCredentials, contract.TopicTenants} {
		reader := state.NewReader(state.Config{Brokers: w.brokers, Topic: topic, Apply: func(record bus.Record) error {
			n.keep(record)
			if topic != contract.TopicCredentials {
				return nil
			}
			err := n.Consume(record)
			if err != nil {
				t.Errorf("cannot apply %s: %v", record.Value, err)
			}
			return err
		}}, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		ended := make(chan error, 1)
		go func() { ended <- reader.Run(ctx) }()
		t.Cleanup(func() { cancel(); <-ended })
		select {
		case <-reader.Ready():
		case <-time.After(testenv.Patience):
			t.Fatalf("%s was not read within %s", topic, testenv.Patience)
		}
	}
	return n
}

// awaitLookup waits until a neighbour's lookup of a secret
// has the error want, and returns the holder.
func (n *neighbour) awaitLookup(t *testing.T, secret string, want error) identity.Principal {
	t.Helper()
	var holder identity.Principal
	testenv.Eventually(t, func() (err error) {
		if holder, err = n.Lookup(secret); errors.Is(err, want) {
			return nil
		}
		return errors.Join(errors.New("the credential is not as it should be"), err)
	})
	return holder
}

// What the API has answered is in force in
// another service, as the contract defines.
func testCredentialsAreInForceEverywhere(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")

	want := identity.Principal{Kind: contract.CredentialAPIKey, ID: acme.key, Organization: acme.organization, Project: acme.project, Environment: "prod"}
	if got := n.awaitLookup(t, acme.secret, nil); text(got) != text(want) {
		t.Errorf("API key: got %+v, want %+v", got, want)
	}
	want = identity.Principal{Kind: contract.CredentialServiceToken, ID: acme.tokenID, Organization: acme.organization, Scopes: []string{"billing:read", "tenants:admin"}}
	if got := n.awaitLookup(t, acme.token, nil); text(got) != text(want) {
		t.Errorf("service token: got %+v, want %+v", got, want)
	}
	if got := n.awaitLookup(t, operatorToken, nil); got.Organization != "" || !got.Has("tenants:admin") {
		t.Errorf("operator: got %+v, want one bound to the installation", got)
	}

	p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", `{"reason":"leaked"}`)
	n.awaitLookup(t, acme.secret, identity.ErrRevoked)
	p.must(t, 200, "POST", "/v1/service-tokens/"+acme.tokenID+"/revoke", `{"reason":"leaked"}`)
	n.awaitLookup(t, acme.token, identity.ErrRevoked)
	if got := p.call(t, acme.token, "GET", "/v1/projects", ""); got.status != 401 {
		t.Errorf("a revoked token still works: %d %s", got.status, got.text)
	}
}

// An expiry is published in advance: it needs no further event.
func testExpiryIsPublished(t *testing.T, p *process) {
	n := p.world.follow(t)
	acme := p.tenant(t, "Acme")
	end := time.Now().Add(500 * time.Millisecond).UTC().Format(time.RFC3339Nano)
	key := p.must(t, 201, "POST", "/v1/api-keys",
		text(map[string]any{"project": acme.project, "environment": "dev", "name": "brief", "expires_at": end})).get("key")
	testenv.Eventually(t, func() error {
		if _, err := n.Lookup(key); !errors.Is(err, identity.ErrExpired) {
			return errors.Join(errors.New("the key has not expired"), err)
		}
		return nil
	})
	testenv.Eventually(t, func() error {
		for _, item := range p.must(t, 200, "GET", "/v1/api-keys?project="+acme.project, "").items(t) {
			if item["name"] == "brief" && item["state"] == "expired" {
				return nil
			}
		}
		return errors.New("the list does not say so")
	})
}

// Facts are published in order, as CloudEvents.
func testFactsArePublished(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	p.must(t, 200, "POST", "/v1/api-keys/"+acme.key+"/revoke", `{"reason":"leaked"}`)
	want := []string{contract.TypeOrganizationCreated, contract.TypeProjectCreated, contract.TypeAPIKeyIssued, contract.TypeAPIKeyRevoked}
	n := p.world.follow(t)
	testenv.Eventually(t, func() error {
		if got := n.facts(t, acme.organization); !slices.Equal(got, want) {
			return errors.New(text(got))
		}
		return nil
	})
}

func (n *neighbour) facts(t *testing.T, organization string) (types []string) {
	t.Helper()
	published := map[string]string{} // by id
	for _, record := range n.kept() {
		attributes, err := contract.ParseAttributes(record.Header)
		if err != nil {
			t.Fatalf("a record on %s is no event: %v", record.Topic, err)
		}
		before, again := published[attributes.ID]
		if again && before != string(record.Value) || attributes.Source != "weir/tenants" || !json.Valid(record.Value) {
			t.Fatalf("a record on %s is %+v %s", record.Topic, attributes, record.Value)
		}
		if published[attributes.ID] = string(record.Value); again {
			continue // a relay that loses its turn may publish once more what it published last
		}
		if record.Topic == contract.TopicTenants && attributes.Organization == organization {
			types = append(types, attributes.Type)
		}
	}
	return types
}

// The tier that the ledger publishes replaces the original one, and
// the request that created the organization may still be repeated.
// A key's own limit is never above the published one.
func testTierOfTheLedger(t *testing.T, p *process) {
	i := p.world.ingestor(t)
	create := func() answer {
		return p.must(t, 201, "POST", "/v1/organizations", `{"name":"Acme","tier":"indie"}`, header{"Idempotency-Key", "tier"})
	}
	made := create()
	if made.get("tier") != "indie" {
		t.Errorf("it begins with %q", made.get("tier"))
	}
	acme := made.get("id")
	i.publish(contract.TopicAccounts, contract.TypeAccountChanged, acme, contract.Account{Organization: acme, Tier: "scale", RequestsPerMinute: 60, Version: 1})
	testenv.Eventually(t, func() error {
		if got := p.must(t, 200, "GET", "/v1/organizations/"+acme, ""); got.get("tier") != "scale" {
			return fmt.Errorf("%w: %s", errNotYet, got.text)
		}
		return nil
	})
	if again := create(); again.get("id") != acme || again.get("tier") != "scale" {
		t.Errorf("the same request again: %s", again.text)
	}
	project := p.must(t, 201, "POST", "/v1/projects", text(map[string]any{"organization": acme, "name": "Shop"})).get("id")
	for rate, want := range map[int]int{60: 201, 61: 400} {
		key := text(map[string]any{"project": project, "environment": "dev", "name": "n", "rate_per_minute": rate})
		if got := p.call(t, operatorToken, "POST", "/v1/api-keys", key); got.status != want {
			t.Errorf("a key with a limit of %d: %d %s", rate, got.status, got.text)
		}
	}
}

// A webhook gets what is published after its creation, whenever that
// happened: on the clock of a test, which may begin before today, or
// as the client dates an entry.
func TestWebhookGetsFactsOfAnyTime(t *testing.T) {
	w := newWorld(t)
	others, p := contracttest.New(t, "tenants", w.brokers, 1), w.start(t, operatorToken)
	acme := p.tenant(t, "Acme")
	path := "/v1/organizations/" + acme.organization + "/webhooks"
	hook := text(map[string]any{"url": "https://127.0.0.1:1/x", "events": []string{"quota.exhausted", "error_group.created"}})
	earlier := p.must(t, 201, "POST", path, hook).get("id")
	others.PublishFact(contract.TypeQuotaExhausted, time.Now().AddDate(1, 0, 0), contract.QuotaExhausted{Organization: acme.organization, Test: true})
	p.awaitDeliveries(t, path, earlier, "quota.exhausted")

	later := p.must(t, 201, "POST", path, hook).get("id")
	lastYear := time.Now().AddDate(-1, 0, 0)
	others.PublishFact(contract.TypeQuotaExhausted, lastYear, contract.QuotaExhausted{Organization: acme.organization, Test: true})
	others.PublishFact(contract.TypeErrorGroupCreated, lastYear, contract.ErrorGroupCreated{
		ErrorGroup: contract.ErrorGroup{Organization: acme.organization, Project: acme.project}, FirstSeen: lastYear})
	p.awaitDeliveries(t, path, later, "error_group.created", "quota.exhausted")
}

// awaitDeliveries waits until these types, sorted, are sent to a webhook,
// and no others.
func (p *process) awaitDeliveries(t *testing.T, path, webhook string, want ...string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		var types []string
		for _, delivery := range p.must(t, 200, "GET", path+"/"+webhook+"/deliveries", "").items(t) {
			types = append(types, fmt.Sprint(delivery["type"]))
		}
		if slices.Sort(types); !slices.Equal(types, want) {
			return fmt.Errorf("%w: %q", errNotYet, types)
		}
		return nil
	})
}

// auditOf reads the audit of an organization, as the operator.
func (p *process) auditOf(t *testing.T, organization, more string) []map[string]any {
	t.Helper()
	return p.must(t, 200, "GET", "/v1/audit-events?limit=1000&organization="+organization+more, "").items(t)
}

// Every decision is in the audit: what changed, by whom, in which
// role, from where and in which request, with the names of that time.
func testAuditHasWhoAndWhat(t *testing.T, p *process) {
	acme := p.tenant(t, "Acme")
	b := p.signedIn(t, acme, "owner")
	b.post(t, apiKeysPage+"/"+acme.key+"/revoke", map[string]string{"reason": "leaked"}, header{"User-Agent", "Test/1.0\x1b"})
	b.post(t, "/console/sign-out", nil)
	lines := p.auditOf(t, acme.organization, "")
	var actions []string
	for i, line := range lines {
		actions = append(actions, line["action"].(string))
		if got := line["sequence"].(float64); int(got) != len(lines)-i {
			t.Errorf("line %d has the number %v", i, got)
		}
	}
	want := []string{"session.ended", "api_key.revoked", "session.started", "member.added", "service_token.issued", "api_key.issued",
		"project.created", "organization.created"}
	if !slices.Equal(actions, want) {
		t.Fatalf("the audit tells of %q, want %q", actions, want)
	}
	revoked := lines[1]
	actor, target := revoked["actor"].(map[string]any), revoked["target"].(map[string]any)
	if actor["kind"] != "member" || actor["role"] != "owner" || !strings.HasPrefix(actor["name"].(string), "Ada (owner@") || actor["id"] != lines[3]["target"].(map[string]any)["id"] {
		t.Errorf("the actor is %v", actor)
	}
	if revoked["address"] != p.address || revoked["client"] != "Test/1.0" || revoked["request_id"] == nil {
		t.Errorf("it came from %v, %v, %v", revoked["address"], revoked["client"], revoked["request_id"])
	}
	before, after := revoked["before"].(map[string]any), revoked["after"].(map[string]any)
	if target["id"] != acme.key || target["name"] != "live" || before["state"] != "active" || after["state"] != "revoked" || after["reason"] != "leaked" {
		t.Errorf("it tells of %v: %v -> %v", target, before, after)
	}
	operator := lines[7]["actor"].(map[string]any)
	if operator["kind"] != "service_token" || operator["name"] != "Operator (from the configuration)" || lines[7]["before"] != nil {
		t.Errorf("the organization was created by %v: %v", operator, lines[7])
	}
	if started := lines[2]; started["actor"].(map[string]any)["id"] != actor["id"] || started["address"] != p.address {
		t.Errorf("the session was started by %v", started)
	}
	var seen []map[string]any // page by page
	for next := ""; ; {
		page := p.must(t, 200, "GET", "/v1/audit-events?limit=3&organization="+acme.organization+next, "")
		seen = append(seen, page.items(t)...)
		if page.body["next_cursor"] == nil {
			break
		}
		next = "&cursor=" + page.get("next_cursor")
	}
	if text(seen) != text(lines) {
		t.Errorf("the pages show %v", seen)
	}
	installation := p.auditOf(t, "*", "")
	if first := installation[len(installation)-1]; first["actor"].(map[string]any)["kind"] != "configuration" {
		t.Errorf("the audit of the installation begins with %v", first)
	}
}
