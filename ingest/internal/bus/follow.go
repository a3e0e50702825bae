package bus

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
)

// FollowCredentials keeps credentials as weir.credentials.v1 tells them. config says how to read, here and below.
func FollowCredentials(config bus.StateConfig, credentials *identity.Credentials, logger *slog.Logger) *bus.StateReader {
	return follow(config, contract.TopicCredentials, logger, func(r bus.Record) error {
		return credentials.Apply(string(r.Key), r.Value)
	})
}

// FollowTenants keeps a directory as weir.tenants.v1 tells it.
func FollowTenants(config bus.StateConfig, directory *identity.Directory, logger *slog.Logger) *bus.StateReader {
	return follow(config, contract.TopicTenants, logger, func(r bus.Record) error {
		return directory.Apply(r.Header(contract.HeaderType), r.Value)
	})
}

// Accounts takes what the ledger says of organizations.
type Accounts interface {
	Apply(organization string, requestsPerMinute int, account ingest.Account)
	Mark(counted ingest.Positions)
}

// FollowAccounts keeps accounts as weir.accounts.v1 tells them.
func FollowAccounts(config bus.StateConfig, accounts Accounts, logger *slog.Logger) *bus.StateReader {
	return follow(config, contract.TopicAccounts, logger, func(r bus.Record) error { return applyAccount(r, accounts) })
}

// follow makes a reader that goes on behind a record that cannot be read: one bad record must not keep out all news.
func follow(config bus.StateConfig, topic string, logger *slog.Logger, apply func(bus.Record) error) *bus.StateReader {
	config.Topic, config.Apply = topic, func(r bus.Record) {
		if err := apply(r); err != nil {
			logger.Error("cannot apply a record of state", slog.String("topic", topic), slog.Int64("offset", r.Offset), slog.String("error", err.Error()))
		}
	}
	return bus.NewStateReader(config, logger)
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
		Period:    ingest.Period{Start: account.PeriodStart.UTC(), End: account.PeriodEnd.UTC()},
		AnchorDay: account.AnchorDay,
		Limit:     account.Quota, NextLimit: account.NextQuota, Used: account.Used,
		Exhausted: account.State == contract.AccountExhausted,
		Suspended: account.State == contract.AccountSuspended,
		Counted:   ingest.Positions(account.Counted), Version: account.Version,
	})
	return nil
}
