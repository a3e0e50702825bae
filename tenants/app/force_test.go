package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
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
		case <-time.After(timeout):
			t.Fatalf("%s was not read within %s", topic, timeout)
		}
	}
	return n
}

// awaitLookup waits until a neighbour's lookup of a secret
// has the error want, and returns the holder.
func (n *neighbour) awaitLookup(t *testing.T, secret string, want error) identity.Principal {
	t.Helper()
	var holder identity.Principal
	testenv.Eventually(t, timeout, func() (err error) {
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
	testenv.Eventually(t, timeout, func() error {
		if _, err := n.Lookup(key); !errors.Is(err, identity.ErrExpired) {
			return errors.Join(errors.New("the key has not expired"), err)
		}
		return nil
	})
	testenv.Eventually(t, timeout, func() error {
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
	testenv.Eventually(t, timeout, func() error {
		if got := n.facts(t, acme.organization); !slices.Equal(got, want) {
			return errors.New(text(got))
		}
		return nil
	})
}

func (n *neighbour) facts(t *testing.T, organization string) (types []string) {
	t.Helper()
	ids := map[string]bool{}
	for _, record := range n.kept() {
		attributes, err := contract.ParseAttributes(record.Header)
		if err != nil {
			t.Fatalf("a record on %s is no event: %v", record.Topic, err)
		}
		if ids[attributes.ID] || attributes.Source != "weir/tenants" || !json.Valid(record.Value) {
			t.Fatalf("a record on %s is %+v %s", record.Topic, attributes, record.Value)
		}
		ids[attributes.ID] = true
		if record.Topic == contract.TopicTenants && attributes.Organization == organization {
			types = append(types, attributes.Type)
		}
	}
	return types
}
