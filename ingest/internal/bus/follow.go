package bus

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
)

// Accounts takes what the ledger says of organizations.
type Accounts interface {
	Apply(organization string, requestsPerMinute int, account ingest.Account)
	Mark(counted ingest.Positions)
}

// FollowAccounts returns a reader that keeps accounts as weir.accounts.v1 tells them. from says how to read; its Topic and its
// Apply are not looked at.
func FollowAccounts(from state.Config, accounts Accounts, logger *slog.Logger) *state.Reader {
	from.Topic, from.Apply = contract.TopicAccounts, func(record bus.Record) error { return applyAccount(record, accounts) }
	return state.NewReader(from, logger)
}

func applyAccount(r bus.Record, accounts Accounts) error {
	if len(r.Value) == 0 {
		return nil // no account is ever taken back
	}
	if string(r.Key) == contract.AccountsCountedKey {
		var marker contract.AccountsCounted
		if err := json.Unmarshal(r.Value, &marker); err != nil {
			return fmt.Errorf("cannot read the marker of accounts: %w", err)
		}
		accounts.Mark(ingest.Positions(marker.Counted))
		return nil
	}
	var account contract.Account
	if err := json.Unmarshal(r.Value, &account); err != nil {
		return fmt.Errorf("cannot read the account %q: %w", r.Key, err)
	}
	accounts.Apply(string(r.Key), account.RequestsPerMinute, ingest.Account{
		Period:    calendar.Period{Start: account.PeriodStart.UTC(), End: account.PeriodEnd.UTC()},
		AnchorDay: account.AnchorDay,
		Limit:     account.Quota, NextLimit: account.NextQuota, Used: account.Used,
		Exhausted: account.State == contract.AccountExhausted,
		Suspended: account.State == contract.AccountSuspended,
		Counted:   ingest.Positions(account.Counted), Version: account.Version,
	})
	return nil
}
