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

// Accounts takes the state of quotas that the ledger publishes.
type Accounts interface {
	Apply(organization string, requestsPerMinute int, account ingest.Account)
	Forget(organization string)
	Mark(counted ingest.Positions)
}

// FollowAccounts returns a reader that keeps accounts as in weir.accounts.v1.
// from configures it, except Topic and Apply.
func FollowAccounts(from state.Config, accounts Accounts, logger *slog.Logger) *state.Reader {
	from.Topic, from.Apply = contract.TopicAccounts, func(record bus.Record) error { return applyAccount(record, accounts) }
	return state.NewReader(from, logger)
}

// applyAccount ignores types it does not consume: a newer ledger may publish
// more. A tombstone is a deleted organization.
func applyAccount(r bus.Record, accounts Accounts) error {
	if len(r.Value) == 0 {
		accounts.Forget(string(r.Key))
		return nil
	}
	switch r.Header(contract.HeaderType) {
	case contract.TypeAccountsCounted:
		return markCounted(r, accounts)
	case contract.TypeAccountChanged:
		return accountChanged(r, accounts)
	}
	return nil
}

func markCounted(r bus.Record, accounts Accounts) error {
	var marker contract.AccountsCounted
	if err := json.Unmarshal(r.Value, &marker); err != nil {
		return fmt.Errorf("cannot read the marker of accounts: %w", err)
	}
	accounts.Mark(ingest.Positions(marker.Counted))
	return nil
}

func accountChanged(r bus.Record, accounts Accounts) error {
	var account contract.Account
	if err := json.Unmarshal(r.Value, &account); err != nil {
		return fmt.Errorf("cannot read the account %q: %w", r.Key, err)
	}
	applied := ingest.Account{
		Period:    calendar.Period{Start: account.PeriodStart.UTC(), End: account.PeriodEnd.UTC()},
		AnchorDay: account.AnchorDay,
		Limit:     account.Quota + account.OverageCap, NextLimit: account.NextQuota + account.NextOverageCap, Used: account.Used,
		Exhausted:     account.State == contract.AccountExhausted,
		Suspended:     account.State == contract.AccountSuspended,
		RetentionDays: account.Retention(),
		Counted:       ingest.Positions(account.Counted), Version: account.Version, Since: account.Raises,
	}
	for _, b := range account.Budgets {
		applied.Budgets = append(applied.Budgets, ingest.Budget{
			Spender: ingest.Spender{Project: b.Project, Key: b.APIKey}, Limit: b.Bytes, Used: b.Used, Exhausted: b.Exhausted, Since: b.Since,
		})
	}
	accounts.Apply(string(r.Key), account.RequestsPerMinute, applied)
	return nil
}
