package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/pg"
)

// maxLocks is what a transaction may hold: the days of two periods, three
// relations each, and some. PostgreSQL has 64 for each connection by default.
const maxLocks = 250

// Reads of transfers lock the days of a period or two, not of the whole
// year, even for prepared statements with a generic plan.
func TestReadsLockFewDays(t *testing.T) {
	l := yearOfTransfers(t)
	for name, read := range readsOfTransfers(l) {
		t.Run(name, func(t *testing.T) {
			l.Read(t, "acme", func(ctx context.Context, tx pgx.Tx) error {
				for range 7 { // the sixth execution may use a generic plan
					if err := read(ctx, tx); err != nil {
						return err
					}
				}
				if held := locks(t, tx); held > maxLocks {
					t.Errorf("%d relations are locked, at most %d may be", held, maxLocks)
				}
				return nil
			})
		})
	}
}

// readsOfTransfers are all reads for requests, each at its largest.
func readsOfTransfers(l *ledgertest.Ledger) map[string]func(ctx context.Context, tx pgx.Tx) error {
	acme, now := pg.Organization("acme"), l.Now()
	month, all := calendar.Period{Start: now.AddDate(0, -1, 0), End: now}, postgres.TransferQuery{To: now.AddDate(1, 0, 0), Limit: 1000}
	rare := all
	rare.Project = "none"
	listed := func(q postgres.TransferQuery) func(ctx context.Context, tx pgx.Tx) error {
		return func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.Transfers(ctx, tx, acme, q)
			return err
		}
	}
	return map[string]func(ctx context.Context, tx pgx.Tx) error{
		"all transfers":  listed(all),
		"rare transfers": listed(rare),
		"the balance at an instant": func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.BalancesAt(ctx, tx, acme, month, now)
			return err
		},
		"what was left of grants": func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.PoolAt(ctx, tx, acme, 1000, now.AddDate(-1, 0, 0))
			return err
		},
		"the charge of a batch": func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.IsCharged(ctx, tx, acme, uuid.Must(uuid.NewV7()))
			return err
		},
		"the last use": func(ctx context.Context, tx pgx.Tx) error {
			_, _, err := postgres.LastUse(ctx, tx, acme, month, now)
			return err
		},
		"who had used how much": func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.Shares(ctx, tx, acme, month.Start, now)
			return err
		},
		"usage beside charges": func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.CheckCharges(ctx, tx, "acme", month.Start)
			return err
		},
		"what a statement is made of": func(ctx context.Context, tx pgx.Tx) error {
			_, err := postgres.StatementSources(ctx, tx, "acme", month)
			return err
		},
	}
}

// yearOfTransfers is a ledger with a year of days, where acme has a
// grant and some usage each month.
func yearOfTransfers(t *testing.T) *ledgertest.Ledger {
	t.Helper()
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Scale)
	l.GrantAcme(t, ledgertest.GrantOf(1000))
	for range 12 {
		days := daysBetween(l.Now(), l.Now().AddDate(0, 1, 0))
		l.Book(t, l.NewCharge("acme", 1))
		l.SetClock(l.Now().AddDate(0, 1, 0))
		l.AdvanceAll(t)
		l.As(t, func(ctx context.Context, tx pgx.Tx) error { return postgres.EnsureDays(ctx, tx, days...) })
	}
	return l
}

func daysBetween(from, to time.Time) (days []time.Time) {
	for day := from; day.Before(to); day = day.AddDate(0, 0, 1) {
		days = append(days, day)
	}
	return days
}

// locks counts the relations that the transaction has locked.
func locks(t *testing.T, tx pgx.Tx) (held int) {
	t.Helper()
	if err := tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'`).Scan(&held); err != nil {
		t.Fatal(err)
	}
	return held
}
