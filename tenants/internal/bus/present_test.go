package bus_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// However history is published again, only what is in force at its
// end is in force meanwhile: what is revoked is revoked at once,
// even by a deletion, and what was forgotten does not return.
func TestWhatEndedIsNeverInForceAgain(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	events := projections.NewEvents(pool)
	keep := func(noun, id string, happened ...tenants.Event) {
		t.Helper()
		if err := events.Append(t.Context(), unitofwork.Stream("org_1", noun, id), 0, nil, happened...); err != nil {
			t.Fatal(err)
		}
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
	keep("api-key", "key_live", issued("key_live", "prj_1", "1"), tenants.APIKeyLimited{APIKey: "key_live", RatePerMinute: 7, At: noon})
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
			if err := json.Unmarshal(m.Message.Payload, &now); err != nil {
				t.Fatal(err)
			}
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
	if err != nil {
		t.Fatal(err)
	}
}

// publishAll is what a relay publishes from the first event on.
func publishAll(t *testing.T, pool *pgxpool.Pool, publication *bus.Publication) (all []relay.Outgoing) {
	t.Helper()
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
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
	if err != nil {
		t.Fatal(err)
	}
	return all
}
