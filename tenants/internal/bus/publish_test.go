package bus_test

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// The key after any number of unpublished events is published.
func TestPublicationGoesOnBehindSilence(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	store := newEvents(pool)
	happened := []tenants.Event{
		tenants.OrganizationCreated{Organization: "org_1", Name: "Acme", Tier: tenants.Indie, At: noon},
		tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon},
	}
	const page = 10
	for i := range 3 * page {
		id := fmt.Sprint("mem_", i)
		happened = append(happened, tenants.MemberMailsChosen{Member: id, At: noon})
	}
	happened = append(happened, tenants.APIKeyIssued{APIKey: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Dev,
		Name: "live", Digest: digest(t), At: noon.Add(time.Hour)})
	for i, event := range happened {
		stream := eventstore.Stream{Organization: "org_1", Name: fmt.Sprint(i)}
		testenv.Must(t, store.Append(t.Context(), stream, 0, nil, event))
	}
	var told []string
	publication, after := bus.NewPublication(store), relay.Cursor{}
	for {
		var messages []relay.Outgoing
		err := pg.ReadAsSystem(t.Context(), pool, func(tx pgx.Tx) (err error) {
			messages, err = publication.Read(t.Context(), tx, after, page)
			return err
		})
		testenv.Must(t, err)
		if len(messages) == 0 {
			break // nothing to do, for a relay
		}
		for _, m := range messages {
			if after = m.Cursor; m.Message != nil {
				told = append(told, m.Message.Metadata[contract.HeaderType])
			}
		}
	}
	want := []string{contract.TypeOrganizationCreated, contract.TypeProjectCreated, contract.TypeCredentialChanged, contract.TypeAPIKeyIssued}
	if fmt.Sprint(told) != fmt.Sprint(want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

func digest(t *testing.T) tenants.SecretDigest {
	t.Helper()
	secret, err := tenants.NewSecret(tenants.APIKeyPrefix, rand.Reader)
	testenv.Must(t, err)
	return secret.Digest()
}

// newEvents returns a store without projections.
func newEvents(pool *pgxpool.Pool) *unitofwork.Events {
	return eventstorepg.New(pool, unitofwork.Codec(), nil)
}

// laterStore is the store of a later version, with other names of events.
func laterStore(pool *pgxpool.Pool) *unitofwork.Events {
	later := unitofwork.Codec()
	later.Encode = func(event tenants.Event) (name string, data []byte, err error) {
		name, data, err = tenants.EncodeEvent(event)
		return strings.Replace(name, ".v1.", ".v9.", 1), data, err
	}
	return eventstorepg.New(pool, later, nil)
}

// An unpublished event of a later version delays no revocation,
// not even in the stream of the key itself; a published one does.
func TestPublicationPassesOverPrivateEvents(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	store, later := newEvents(pool), laterStore(pool)
	key := eventstore.Stream{Organization: "org_1", Name: "api-key/key_1"}
	project := eventstore.Stream{Organization: "org_1", Name: "project/prj_1"}
	for _, step := range []struct {
		by      *unitofwork.Events
		stream  eventstore.Stream
		version int64
		event   tenants.Event
	}{
		{store, key, 0, tenants.APIKeyIssued{
			APIKey: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Dev, Name: "live", Digest: digest(t), At: noon,
		}},
		{later, key, 1, tenants.MemberMailsChosen{Member: "mem_1", At: noon}},
		{store, key, 2, tenants.APIKeyRevoked{APIKey: "key_1", Reason: "leaked", At: noon.Add(time.Hour)}},
		{later, project, 0, tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon}},
	} {
		testenv.Must(t, step.by.Append(t.Context(), step.stream, step.version, nil, step.event))
	}
	publication := bus.NewPublication(store)
	messages, err := readOne(t, pool, publication, relay.Cursor{Position: 1})
	if err != nil || len(messages) != 1 || messages[0].Message != nil || messages[0].Cursor.Position != 2 {
		t.Errorf("of the private event %v is published, %v", messages, err)
	}
	messages, err = readOne(t, pool, publication, relay.Cursor{Position: 2})
	if err != nil || len(messages) != 2 || messages[1].Message.Metadata[contract.HeaderType] != contract.TypeAPIKeyRevoked {
		t.Errorf("of the revocation behind it %v is published, %v", messages, err)
	}
	if messages, err = readOne(t, pool, publication, relay.Cursor{Position: 3}); err == nil || !strings.Contains(err.Error(), "tenants.v9.project_created") {
		t.Errorf("of an event that others should learn of %v is published, %v", messages, err)
	}
	if history, err := store.Read(t.Context(), key); err == nil {
		t.Errorf("a decision goes by %v", history)
	}
}

// readOne is what a publication makes of the first event after a cursor.
func readOne(t *testing.T, pool *pgxpool.Pool, publication *bus.Publication, after relay.Cursor) (messages []relay.Outgoing, err error) {
	t.Helper()
	err = pg.ReadAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		messages, err = publication.Read(t.Context(), tx, after, 1)
		return err
	})
	return messages, err
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// However history is published again, only what is in force at its
// end is in force meanwhile: what is revoked is revoked at once,
// even by a deletion, and what was forgotten does not return.
func TestWhatEndedIsNeverInForceAgain(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	events := projections.NewEvents(pool)
	keep := func(noun, id string, happened ...tenants.Event) {
		t.Helper()
		testenv.Must(t, events.Append(t.Context(), unitofwork.Stream("org_1", noun, id), 0, nil, happened...))
	}
	digest := func(name string) tenants.SecretDigest {
		return tenants.SecretDigest{Hash: strings.Repeat(name, 64), First: "ab12", Last: "9f3e"}
	}
	issued := func(id, project, hash string) tenants.Event {
		return tenants.APIKeyIssued{APIKey: id, Organization: "org_1", Project: project, Environment: tenants.Dev, Name: id, Digest: digest(hash), At: noon}
	}
	keep("organization", "org_1", tenants.OrganizationCreated{Organization: "org_1", Name: "Acme", Tier: tenants.Indie, At: noon})
	keep("project", "prj_1", tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon})
	keep("project", "prj_2", tenants.ProjectCreated{Project: "prj_2", Organization: "org_1", Name: "Old", At: noon})
	keep("member", "mem_1", tenants.MemberAdded{Member: "mem_1", Organization: "org_1", Email: "a@example.com", Name: "A", Role: tenants.Owner, PasswordHash: "x", At: noon})
	keep("api-key", "key_live", issued("key_live", "prj_1", "1"), tenants.APIKeyChanged{APIKey: "key_live", Name: "key_live", RatePerMinute: 7, At: noon})
	keep("api-key", "key_revoked", issued("key_revoked", "prj_1", "2"), tenants.APIKeyRevoked{APIKey: "key_revoked", Reason: "leaked", At: noon})
	keep("api-key", "key_forgotten", issued("key_forgotten", "prj_1", "3"), tenants.APIKeyRevoked{APIKey: "key_forgotten", At: noon})
	keep("api-key", "key_deleted", issued("key_deleted", "prj_2", "4"))
	ends := noon.Add(tenants.SessionLifetime)
	keep("session", "ses_1", tenants.SessionStarted{Session: "ses_1", Organization: "org_1", Member: "mem_1", Role: tenants.Owner, Digest: digest("5"), At: noon,
		ExpiresAt: noon.Add(tenants.SessionIdleTimeout), EndsAt: &ends}, tenants.SessionEnded{Session: "ses_1", At: noon})
	keep("session", "ses_2", tenants.SessionStarted{Session: "ses_2", Organization: "org_1", Member: "mem_1", Role: tenants.Owner, Digest: digest("6"), At: noon,
		ExpiresAt: noon.Add(tenants.SessionIdleTimeout), EndsAt: &ends})
	keep("deletion", "prj_2", tenants.DeletionRequested{Deletable: tenants.Deletable{Organization: "org_1", Project: "prj_2"}, At: noon, BeginsAt: noon.Add(time.Hour)})
	remove(t, pool, `DELETE FROM api_keys WHERE id = 'key_forgotten'`, `DELETE FROM sessions WHERE id = 'ses_2'`)

	refused, admitted, seen := map[string]bool{}, map[string]bool{}, map[string]int{}
	for _, m := range publishAll(t, pool, bus.NewPublication(events)) {
		if m.Topic != contract.TopicCredentials {
			continue
		}
		key := m.Message.Metadata[weirbus.KeyMetadata]
		var now struct {
			State, Project string
			RatePerMinute  int `json:"rate_per_minute"`
		}
		if m.Message.Payload != nil {
			testenv.Must(t, json.Unmarshal(m.Message.Payload, &now))
		}
		seen[key[:1]]++
		refused[key] = now.State == contract.CredentialRevoked
		if now.State == contract.CredentialActive && !refused[contract.HolderKey("", now.Project)] {
			admitted[key[:1]] = true
		}
		if key[:1] == "1" && now.RatePerMinute != 7 {
			t.Errorf("the limited key is published as %s", m.Message.Payload)
		}
	}
	for _, key := range []string{"1", "2", "3", "4", "5", "6"} {
		if seen[key] == 0 || admitted[key] != (key == "1") {
			t.Errorf("credential %s: published %d times, in force: %t", key, seen[key], admitted[key])
		}
	}
}

func remove(t *testing.T, pool *pgxpool.Pool, statements ...string) {
	t.Helper()
	err := pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		for _, statement := range statements {
			if _, err := tx.Exec(t.Context(), statement); err != nil {
				return err
			}
		}
		return nil
	})
	testenv.Must(t, err)
}

// publishAll is what a relay publishes from the first event on.
func publishAll(t *testing.T, pool *pgxpool.Pool, publication *bus.Publication) (all []relay.Outgoing) {
	t.Helper()
	err := pg.ReadAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
		for after := (relay.Cursor{}); ; {
			page, err := publication.Read(t.Context(), tx, after, 10)
			if err != nil || len(page) == 0 {
				return err
			}
			after = page[len(page)-1].Cursor
			for _, m := range page {
				if m.Message != nil {
					all = append(all, m)
				}
			}
		}
	})
	testenv.Must(t, err)
	return all
}
