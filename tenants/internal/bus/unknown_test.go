package bus_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/bus"
	"github.com/weirlog/weir/tenants/internal/projections"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

// What was created or changed after the backup is
// unknown; what the database has published is not.
func TestUnknownCredentials(t *testing.T) {
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	issued := tenants.ServiceTokenIssued{ServiceToken: "tok_1", Organization: tenants.Installation, Name: "operator", Scopes: []string{"tenants:admin"},
		Digest: tenants.SecretDigest{Hash: strings.Repeat("1", 64), First: "ab12", Last: "9f3e"}, At: noon}
	if err := projections.NewEvents(pool).Append(t.Context(), unitofwork.Stream(tenants.Installation, "service-token", "tok_1"), 0, nil, issued); err != nil {
		t.Fatal(err)
	}
	record := func(value any) weirbus.Record {
		encoded, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
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
