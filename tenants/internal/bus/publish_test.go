package bus_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/eventstore/eventstorepg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/bus"
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
		happened = append(happened, tenants.MemberAdded{Member: id, Organization: "org_1", Email: id + "@example.com", Name: id,
			Role: tenants.Owner, PasswordHash: "x", At: noon})
	}
	happened = append(happened, tenants.APIKeyIssued{APIKey: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Dev,
		Name: "live", Digest: digest(t), At: noon.Add(time.Hour)})
	for i, event := range happened {
		stream := eventstore.Stream{Organization: "org_1", Name: fmt.Sprint(i)}
		if err := store.Append(t.Context(), stream, 0, nil, event); err != nil {
			t.Fatal(err)
		}
	}
	var told []string
	publication, after := bus.NewPublication(store), relay.Cursor{}
	for {
		var messages []relay.Outgoing
		err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) (err error) {
			messages, err = publication.Read(t.Context(), tx, after, page)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
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
		{later, key, 1, tenants.APIKeyRenamed{APIKey: "key_1", Name: "old", At: noon}},
		{store, key, 2, tenants.APIKeyRevoked{APIKey: "key_1", Reason: "leaked", At: noon.Add(time.Hour)}},
		{later, project, 0, tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon}},
	} {
		if err := step.by.Append(t.Context(), step.stream, step.version, nil, step.event); err != nil {
			t.Fatal(err)
		}
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
	err = pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		messages, err = publication.Read(t.Context(), tx, after, 1)
		return err
	})
	return messages, err
}
