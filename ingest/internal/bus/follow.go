package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/lifecycle"
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

// Replicas counts the running replicas of ingest: the members of the log
// store's group. One that has just ended counts until its session does.
func Replicas(ctx context.Context, brokers []string, dialer *bus.Dialer) (ingest.Replicas, error) {
	members, err := cluster.Members(ctx, brokers, dialer, []string{contract.GroupLogStore})
	return ingest.Replicas(max(members[contract.GroupLogStore], 1)), err
}

// A Log reads weir.logs.v1 from any position up to an end.
type Log struct {
	Brokers []string
	Dialer  *bus.Dialer // nil: the default
}

func (l *Log) reader() *logrange.Reader {
	return &logrange.Reader{Brokers: l.Brokers, Dialer: l.Dialer, Topic: contract.TopicLogs}
}

// Ends are the offsets of each partition's next record.
func (l *Log) Ends(ctx context.Context) (ingest.Positions, error) {
	_, ends, err := l.Extent(ctx)
	return ends, err
}

// Extent is the id of the topic and where its partitions end now.
func (l *Log) Extent(ctx context.Context) (topic [16]byte, ends ingest.Positions, err error) {
	topic, bounds, err := l.reader().Bounds(ctx)
	if err != nil {
		return topic, nil, err
	}
	ends = ingest.Positions{}
	for partition, b := range bounds {
		ends[partition] = b.End
	}
	return topic, ends, nil
}

// A Range is a run of offsets of a partition, half-open.
type Range struct {
	Partition int
	From, To  int64
}

// Charges returns what the requests cost whose last records are in ranges.
func (l *Log) Charges(ctx context.Context, ranges ...Range) ([]ingest.Charge, error) {
	var mu sync.Mutex
	var charges []ingest.Charge
	add := func(record bus.Record) {
		event, err := contract.ParseLogsAccepted(record.Header, nil)
		if err != nil || event.Part < event.Parts {
			return // the ledger parks the one, and counts the other with the last part of its request
		}
		mu.Lock()
		defer mu.Unlock()
		charges = append(charges, ingest.Charge{
			Organization: event.Organization, Project: event.Project, Key: event.Key, At: event.Time,
			Bytes: event.Total(), Partition: record.Partition, Offset: record.Offset,
		})
	}
	var readers []func(context.Context) error
	for _, r := range ranges {
		readers = append(readers, func(ctx context.Context) error {
			_, err := l.reader().Read(ctx, r.Partition, min(r.From, r.To), r.To, add)
			return err
		})
	}
	if err := lifecycle.Run(ctx, readers...); err != nil {
		return nil, err
	}
	return charges, ctx.Err()
}
