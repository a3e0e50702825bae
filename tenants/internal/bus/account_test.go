package bus

import (
	"encoding/json"
	"testing"

	weirbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
)

func accountRecord(t *testing.T, account contract.Account) weirbus.Record {
	t.Helper()
	value, err := json.Marshal(account)
	if err != nil {
		t.Fatal(err)
	}
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
		if err := accounts.Apply(step.record); err != nil {
			t.Fatal(err)
		}
		if tier, limit := accounts.Tier("org_1"), accounts.RequestsPerMinute("org_1"); tier != step.tier || limit != step.limit {
			t.Errorf("after record %d: %q and %d, want %q and %d", n, tier, limit, step.tier, step.limit)
		}
	}
}
