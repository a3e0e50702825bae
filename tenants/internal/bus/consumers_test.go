package bus

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/jackc/pgx/v5"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	schema "github.com/weirlog/weir/tenants/internal"
)

// Uses and exposures are consumed beside types
// of a newer version, which are no failure.
func TestUnknownTypesOfUsagePass(t *testing.T) {
	used, exposed := 0, 0
	consumer := UsageConsumer{
		Exposed: func(context.Context, pgx.Tx, string, string, tenants.Exposure) error { exposed++; return nil },
		Used:    func(_ context.Context, _ pgx.Tx, all []tenants.UsedAPIKey) error { used += len(all); return nil },
	}
	const owner = `{"organization":"org_1","api_key":"key_1","how":"plain_http"}`
	var records []weirbus.Record
	for _, r := range [][2]string{
		{"weir.ingest.v1.sung", `no JSON`}, {contract.TypeKeyUsed, owner}, {contract.TypeKeyExposed, owner}, {"", ""},
	} {
		records = append(records, weirbus.Record{Value: []byte(r[1]), Headers: []weirbus.Header{{Key: contract.HeaderType, Value: []byte(r[0])}}})
	}
	pool := pgtest.Open(t, schema.Name, schema.Migrations()...)
	err := pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error { return consumer.Consume(t.Context(), tx, records) })
	if err != nil || used != 1 || exposed != 1 {
		t.Errorf("%d uses, %d exposures, %v", used, exposed, err)
	}
}

func accountRecord(t *testing.T, account contract.Account) weirbus.Record {
	t.Helper()
	value, err := json.Marshal(account)
	testenv.Must(t, err)
	return weirbus.Record{
		Key: []byte(account.Organization), Value: value, Headers: []weirbus.Header{{Key: contract.HeaderType, Value: []byte(contract.TypeAccountChanged)}},
	}
}

// The latest state of an account counts, even if older
// ones are repeated, until the organization is gone.
func TestAccountsFollowTheLatestVersion(t *testing.T) {
	first := accountRecord(t, contract.Account{Organization: "org_1", Tier: "indie", RequestsPerMinute: 60, Version: 1})
	second := accountRecord(t, contract.Account{Organization: "org_1", Tier: "scale", RequestsPerMinute: 600, Version: 2})
	accounts := NewAccounts()
	for n, step := range []struct {
		record weirbus.Record
		tier   tenants.Tier
		limit  int
	}{
		{weirbus.Record{Key: []byte("counted"), Value: []byte("no JSON")}, "", 0},
		{first, tenants.Indie, 60},
		{second, tenants.Scale, 600},
		{first, tenants.Scale, 600},
		{weirbus.Record{Key: []byte("org_1")}, "", 0},
		{first, tenants.Indie, 60},
	} {
		testenv.Must(t, accounts.Apply(step.record))
		if tier, limit := accounts.Tier("org_1"), accounts.RequestsPerMinute("org_1"); tier != step.tier || limit != step.limit {
			t.Errorf("after record %d: %q and %d, want %q and %d", n, tier, limit, step.tier, step.limit)
		}
	}
}
