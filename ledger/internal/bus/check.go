package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/accounts"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/logrange"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// A Log reads weir.logs.v1 again to compare it with the charges.
type Log struct {
	Brokers []string
	Dialer  *bus.Dialer // nil: the default
}

// Check reads the records of a partition's ranges, in offset order, and
// adds up their headers. Records that retention has removed, or that
// the log has lost and fillers stand for, can't be checked and count as
// sound.
func (l *Log) Check(ctx context.Context, ranges []ledger.Range) ([]ledger.Violation, error) {
	if len(ranges) == 0 {
		return nil, nil
	}
	found := make([]ledger.Range, len(ranges))
	for i := range found {
		found[i].Checksum = new(int64)
	}
	lost := map[int]bool{} // ranges with fillers
	start, err := l.read(ctx, ranges, func(record bus.Record) {
		at, ok := slices.BinarySearchFunc(ranges, record.Offset, compareRange)
		if !ok {
			return
		}
		lost[at] = lost[at] || record.IsFiller()
		// A record that can't be parsed is parked; the ranges leave it out.
		if logs, err := contract.ParseLogsAccepted(record.Lookup(), nil); err == nil {
			found[at].Records++
			found[at].Bytes += logs.Bytes
			*found[at].Checksum += int64(logs.Checksum()) //nolint:gosec // it wraps around
		}
	})
	if err != nil {
		return nil, err
	}
	var violations []ledger.Violation
	for i, r := range ranges {
		if r.First >= start && !lost[i] && !sameRecords(r, found[i]) {
			violations = append(violations, ledger.Violation{Invariant: ledger.LedgerIsLog, Detail: fmt.Sprintf(
				"partition %d, offsets [%d, %d): %d bytes of %d records were applied, the log has %d bytes of %d, with the checksum %x",
				r.Partition, r.First, r.Next, r.Bytes, r.Records, found[i].Bytes, found[i].Records, *found[i].Checksum)})
		}
	}
	return violations, nil
}

// sameRecords reports whether a range matches the log.
func sameRecords(applied, found ledger.Range) bool {
	return found.Records == applied.Records && found.Bytes == applied.Bytes && (applied.Checksum == nil || *applied.Checksum == *found.Checksum)
}

// compareRange compares a range with an offset, for a binary search.
func compareRange(r ledger.Range, offset int64) int {
	switch {
	case r.Next <= offset:
		return -1
	case r.First > offset:
		return 1
	}
	return 0
}

// End returns where the log ends now.
func (l *Log) End(ctx context.Context) (snapshot.End, error) {
	reader := &logrange.Reader{Brokers: l.Brokers, Dialer: l.Dialer, Topic: contract.TopicLogs}
	topic, bounds, err := reader.Bounds(ctx)
	end := snapshot.End{Topic: topic, Next: contract.Positions{}}
	for partition, log := range bounds {
		end.Next[partition] = log.End
	}
	return end, err
}

// read calls each with the records from the first range to the last. It
// returns the first offset still in the log.
func (l *Log) read(ctx context.Context, ranges []ledger.Range, each func(bus.Record)) (start int64, err error) {
	reader := &logrange.Reader{Brokers: l.Brokers, Dialer: l.Dialer, Topic: contract.TopicLogs}
	return reader.Read(ctx, ranges[0].Partition, ranges[0].First, ranges[len(ranges)-1].Next, each)
}

// compareInterval is how often all account states are compared with
// weir.accounts.v1.
const compareInterval = 10 * time.Minute

// NewRepublished counts the account states that the topic had lost.
func NewRepublished(registerer prometheus.Registerer) prometheus.Counter {
	return promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_ledger_republished_accounts_total",
		Help: "States of accounts that were published again, because weir.accounts.v1 had lost them.",
	})
}

// heal makes the accounts due whose published states differ from those
// of the topic: at the beginning of a lead, as soon as an offset comes a
// second time, and every now and then. Nothing is published meanwhile,
// and before the books have caught up nothing is compared.
func (a *Accounts) heal(ctx context.Context, conn *pgx.Conn) error {
	if !a.CaughtUp() || a.Clock().Before(a.compareAt) {
		return nil
	}
	has, err := a.readTopic(ctx)
	if err != nil {
		return err
	}
	var differing []string
	err = pg.InTxAsSystem(ctx, conn, func(tx pgx.Tx) error {
		published, err := a.Services.Accounts.Published(ctx, tx)
		if err != nil {
			return err
		}
		if differing = differ(published, has); len(differing) == 0 {
			return nil
		}
		return a.Services.Accounts.Repeat(ctx, tx, differing)
	})
	if err != nil {
		return fmt.Errorf("cannot compare the accounts with %s: %w", contract.TopicAccounts, err)
	}
	if n := len(differing); n > 0 {
		a.Republished.Add(float64(n))
		a.Logger.Warn(contract.TopicAccounts+" has lost states of accounts: publishing them again", slog.Int("accounts", n), slog.String("first", differing[0]))
	}
	a.compareAt = a.Clock().Add(compareInterval)
	return nil
}

// readTopic returns the newest state of each account on the topic.
func (a *Accounts) readTopic(ctx context.Context) (map[string]contract.Account, error) {
	brokers, dialer := a.Publisher.Servers()
	has := map[string]contract.Account{}
	return has, state.Once(ctx, state.Config{Brokers: brokers, Dialer: dialer, Topic: contract.TopicAccounts}, a.Logger, func(record bus.Record) {
		switch {
		case len(record.Value) == 0:
			delete(has, string(record.Key))
		case record.Header(contract.HeaderType) == contract.TypeAccountChanged:
			var account contract.Account
			if json.Unmarshal(record.Value, &account) != nil {
				account = contract.Account{} // readers pass over it: it differs from every published one
			}
			has[string(record.Key)] = account
		}
	})
}

// differ returns the organizations whose states on the topic are not
// those that were published, and deleted ones that it still has.
func differ(published accounts.Round, has map[string]contract.Account) (organizations []string) {
	for _, account := range published.Accounts {
		held, there := has[account.Organization.ID]
		if !there || !bytes.Equal(substance(held), substance(newAccount(account, nil))) {
			organizations = append(organizations, account.Organization.ID)
		}
	}
	for _, account := range published.Deleted {
		if _, there := has[account.Organization.ID]; there {
			organizations = append(organizations, account.Organization.ID)
		}
	}
	return organizations
}

// substance is what an account says, whenever it was published.
func substance(account contract.Account) []byte {
	account.Version, account.Counted = 0, nil
	return encode(account)
}

// see notes where a marker was published: a log that gives an offset a
// second time has lost its end.
func (a *Accounts) see(at bus.Position) {
	if at.Offset >= 0 && at.Offset <= a.last {
		a.Logger.Warn(contract.TopicAccounts+" has lost its end: comparing the accounts with it", slog.Int64("offset", at.Offset), slog.Int64("before", a.last))
		a.compareAt = time.Time{}
	}
	a.last = at.Offset
}
