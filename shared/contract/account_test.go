package contract_test

import (
	"testing"

	"github.com/weirlog/weir/shared/contract"
)

// An account published before accounts named their retention has its tier's.
func TestRetentionOfAccounts(t *testing.T) {
	for _, c := range []struct {
		account contract.Account
		want    int
	}{
		{contract.Account{Tier: "indie"}, 7},
		{contract.Account{Tier: "bootstrapper"}, 30},
		{contract.Account{Tier: "compliance"}, 365},
		{contract.Account{Tier: "scale"}, 90},
		{contract.Account{Tier: "of a newer ledger"}, 365},
		{contract.Account{Tier: "indie", RetentionDays: 14}, 14},
	} {
		if got := c.account.Retention(); got != c.want {
			t.Errorf("%+v is kept for %d days, want %d", c.account, got, c.want)
		}
	}
}
