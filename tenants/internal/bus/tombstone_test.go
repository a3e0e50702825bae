package bus_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// A session that ended a day ago is removed from the topic
// with all its secrets. Usable ones and API keys stay.
func TestSessionsAreForgotten(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	events := newEvents(pool)
	first, renewed, second := digest(t), digest(t), digest(t)
	keep := func(stream string, version int64, event tenants.Event) {
		t.Helper()
		testenv.Must(t, events.Append(t.Context(), eventstore.Stream{Organization: "org_1", Name: stream}, version, nil, event))
	}
	started := func(id string, digest tenants.SecretDigest, at time.Time) tenants.Event {
		ends := at.Add(tenants.SessionLifetime)
		return tenants.SessionStarted{Session: id, Organization: "org_1", Member: "mem_1", Role: tenants.Owner, Digest: digest, At: at,
			ExpiresAt: at.Add(tenants.SessionIdleTimeout), EndsAt: &ends}
	}
	keep("organization", 0, tenants.OrganizationCreated{Organization: "org_1", Name: "Acme", Tier: tenants.Indie, At: noon})
	keep("project", 0, tenants.ProjectCreated{Project: "prj_1", Organization: "org_1", Name: "Shop", At: noon})
	keep("member", 0, tenants.MemberAdded{Member: "mem_1", Organization: "org_1", Email: "a@example.com", Name: "A", Role: tenants.Owner, PasswordHash: "x", At: noon})
	keep("key", 0, tenants.APIKeyIssued{APIKey: "key_1", Organization: "org_1", Project: "prj_1", Environment: tenants.Dev, Name: "live", Digest: digest(t), At: noon})
	keep("session 1", 0, started("ses_1", first, noon))
	keep("session 1", 1, tenants.SessionRenewed{Session: "ses_1", Digest: renewed, At: noon.Add(4 * time.Hour), ExpiresAt: noon.Add(16 * time.Hour), ReplacedUntil: noon.Add(4 * time.Hour)})
	keep("session 2", 0, started("ses_2", second, noon.Add(24*time.Hour)))

	now, after := noon, relay.Cursor{}
	forgetting := bus.NewSessionTombstones(events, func() time.Time { return now })
	forgotten := func() (keys []string) {
		t.Helper()
		err := pg.ReadAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
			messages, err := forgetting.Read(t.Context(), tx, after, 100)
			for _, m := range messages {
				if after = m.Cursor; m.Message == nil {
					continue
				}
				if m.Topic != contract.TopicCredentials || m.Message.Payload != nil || m.Message.UUID == "" {
					t.Errorf("a tombstone is %+v", m)
				}
				keys = append(keys, m.Message.Metadata[weirbus.KeyMetadata])
			}
			return err
		})
		testenv.Must(t, err)
		return keys
	}
	last := noon.Add(tenants.SessionLifetime).Add(24 * time.Hour)
	for _, step := range []struct {
		at   time.Time
		want []string
	}{
		{noon, nil}, {last.Add(-time.Nanosecond), nil}, {last, []string{first.Hash, renewed.Hash}}, {last, nil},
		{last.Add(24 * time.Hour), []string{second.Hash}}, {last.Add(48 * time.Hour), nil},
	} {
		now = step.at
		if got := forgotten(); !slices.Equal(got, step.want) {
			t.Errorf("at %s: forgotten %q, want %q", step.at, got, step.want)
		}
	}
}

// What was created or changed after the backup is
// unknown; what the database has published is not.
func TestUnknownCredentials(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	issued := tenants.ServiceTokenIssued{ServiceToken: "tok_1", Organization: tenants.Installation, Name: "operator", Scopes: []string{"tenants:admin"},
		Digest: tenants.SecretDigest{Hash: strings.Repeat("1", 64), First: "ab12", Last: "9f3e"}, At: noon}
	testenv.Must(t, projections.NewEvents(pool).Append(t.Context(), unitofwork.Stream(tenants.Installation, "service-token", "tok_1"), 0, nil, issued))
	record := func(value any) weirbus.Record {
		encoded, err := json.Marshal(value)
		testenv.Must(t, err)
		return weirbus.Record{Value: encoded}
	}
	token := contract.Credential{Kind: contract.CredentialServiceToken, ID: "tok_1", State: contract.CredentialActive, Version: 1}
	newer := token
	newer.Version = 2
	records := map[string]weirbus.Record{
		"known":   record(token),
		"newer":   record(newer),
		"key":     record(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_1", Organization: "org_1", Project: "prj_1", Version: 1}),
		"session": record(contract.Credential{Kind: contract.CredentialSession, ID: "ses_1", Organization: "org_1", Version: 1}),
		"holder":  record(contract.Holder{Organization: "org_1", State: contract.CredentialRevoked, Version: 1}),
		"nul":     record(contract.Credential{Kind: contract.CredentialAPIKey, ID: "key_\x00", Organization: "org_1", Project: "prj_1", Version: 1}),
		"torn":    {Value: []byte(`{"version":"`)},
	}
	var unknown []string
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		messages, err := bus.Unknown(t.Context(), tx, records, time.Now())
		for _, m := range messages {
			if len(m.Payload) > 0 {
				t.Errorf("a tombstone with %q", m.Payload)
			}
			unknown = append(unknown, m.Metadata.Get(weirbus.KeyMetadata))
		}
		return err
	})
	if want := []string{"holder", "key", "newer", "session", "nul", "torn"}; err != nil || !slices.Equal(unknown, want) {
		t.Errorf("unknown are %q, %v, want %q", unknown, err, want)
	}
	records = map[string]weirbus.Record{"later": record(contract.Credential{Kind: "certificate", Version: 1})}
	err = pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := bus.Unknown(t.Context(), tx, records, time.Now())
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a kind of a later version: %v", err)
	}
}
