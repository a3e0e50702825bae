package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// A transaction of one organization can neither see nor write another's rows.
func TestIsolation(t *testing.T) {
	l := ledgertest.New(t)
	for _, organization := range []string{"acme", "evil"} {
		l.Start(t, organization, ledger.Indie)
		l.Book(t, l.NewCharge(organization, 60))
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			var batch pgx.Batch
			outbox.Queue(&batch, []outbox.Fact{{Organization: organization, ID: "threshold", Type: "reached", At: l.Now(), Body: []byte(`{}`)}})
			return tx.SendBatch(ctx, &batch).Close()
		})
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			tally := ledger.Tally{Organization: organization, Process: "run", Sequence: 1, At: l.Now()}
			refusal := ledger.Refusal{Organization: organization, Requests: 1, Cause: ledger.Cause{Event: "req", At: l.Now()}}
			_, err := l.Booking.Refuse(ctx, tx, l.Now(), []ledger.Refusal{refusal})
			return errors.Join(err, l.Booking.Count(ctx, tx, l.Now(), []ledger.Tally{tally}))
		})
	}
	for _, table := range []string{"organizations", "books", "transfers", "usage_days", "usage_hours", "tallies", "refusals", "facts", "unpublished"} {
		l.Read(t, "evil", func(ctx context.Context, tx pgx.Tx) error {
			var foreign, own int
			err := tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE organization <> 'evil'), count(*) FROM `+table).Scan(&foreign, &own)
			if foreign != 0 || own == 0 {
				t.Errorf("%s shows %d rows of others among %d", table, foreign, own)
			}
			return err
		})
	}
	l.Read(t, "evil", func(ctx context.Context, tx pgx.Tx) error {
		if o, found, err := postgres.LoadOrganization(ctx, tx, "acme"); err != nil || found {
			t.Errorf("found %+v, error %v", o, err)
		}
		return nil
	})
	err := pg.InTx(t.Context(), l.Pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "evil"); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `UPDATE books SET organization = 'acme'`)
		return err
	})
	if err == nil {
		t.Error("a row was moved to another organization")
	}
}

// What a process records at its start is what others read: rules get a
// version where they differ, and retention is the last one.
func TestWhatAProcessRecords(t *testing.T) {
	l := ledgertest.New(t)
	record := func(quota int64, kept ledger.Retention) (rules ledger.Rules, found ledger.Retention) {
		l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
			if found, err = postgres.LoadRetention(ctx, tx); err != nil || found == kept {
				t.Errorf("before it is recorded: %+v, error %v", found, err)
			}
			rules := ledger.Rules{Tiers: ledger.Tiers{ledger.Indie: {Quota: quota, RequestsPerMinute: 1, RetentionDays: 1}}, Thresholds: ledger.Thresholds{7}}
			return postgres.RecordTerms(ctx, tx, rules, kept)
		})
		l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
			if rules, err = postgres.LoadRules(ctx, tx); err == nil {
				found, err = postgres.LoadRetention(ctx, tx)
			}
			return err
		})
		return rules, found
	}
	for i, quota := range []int64{5, 5, 6} {
		kept := ledger.Retention{Hours: 1, Transfers: 4, Books: 10 + i}
		rules, found := record(quota, kept)
		if want := []int64{2, 2, 3}[i]; rules.Version != want || rules.Tiers[ledger.Indie].Quota != quota || rules.Thresholds[0] != 7 {
			t.Errorf("rules %+v, want version %d", rules, want)
		}
		if found != kept {
			t.Errorf("retention %+v, want %+v", found, kept)
		}
	}
}

// Rules that were changed together with their hash are not those that
// organizations were decided to follow.
func TestRulesThatNobodyDecidedAreFound(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	if _, err := l.Plans.Follow(t.Context(), l.Pool); err != nil {
		t.Fatal(err)
	}
	check := func() (found []ledger.Violation) {
		l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) (err error) {
			found, _, err = postgres.CheckStandings(ctx, tx, "", l.Now(), l.Now())
			return err
		})
		return found
	}
	if found := check(); len(found) > 0 {
		t.Errorf("before they are changed: %+v", found)
	}
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `WITH changed AS (SELECT jsonb_set(rules, '{tiers,indie,quota}', '7') AS rules FROM terms)
			UPDATE terms SET rules = changed.rules, hash = sha256(convert_to(jsonb_build_array(version, changed.rules, kept)::text, 'UTF8')) FROM changed`)
		return err
	})
	if found := check(); len(found) != 1 || found[0].Invariant != ledger.TermsAreRecorded {
		t.Errorf("found %+v, want the rules", found)
	}
}

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
	testenv.Must(t, tx.QueryRow(t.Context(), `SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation'`).Scan(&held))
	return held
}

// Only the summary gives way: other statements of its transaction wait
// as long as before.
func TestOnlySummariesGiveWay(t *testing.T) {
	l := ledgertest.New(t)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		const shown = `SHOW lock_timeout`
		var before, after string
		if err := tx.QueryRow(ctx, shown).Scan(&before); err != nil {
			return err
		}
		if err := postgres.Summarize(ctx, tx, l.Now().Add(-24*time.Hour), l.Now()); err != nil {
			return err
		}
		err := tx.QueryRow(ctx, shown).Scan(&after)
		if after != before {
			t.Errorf("waits for a lock %s at most, before %s", after, before)
		}
		return err
	})
}
