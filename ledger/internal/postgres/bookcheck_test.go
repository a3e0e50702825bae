package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// A checkedLedger is a ledger whose books are checked.
type checkedLedger struct{ *ledgertest.Ledger }

// chargeRange books a charge as of an instant and returns its range.
func (l checkedLedger) chargeRange(t *testing.T, organization string, bytes int64, booked time.Time) ledger.Range {
	t.Helper()
	charge := l.NewCharge(organization, bytes)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := l.Booking.Charge(ctx, tx, booked, []ledger.Charge{charge})
		return err
	})
	return ledger.RangesOf([]ledger.Charge{charge}, []ledger.Charge{charge}, booked)[0]
}

// checked returns the violations in the books of a range.
func (l checkedLedger) checked(t *testing.T, check *postgres.BookCheck, r ledger.Range) (found []string) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		keys, err := postgres.TouchedBy(ctx, tx, r, 20)
		if err != nil {
			return err
		}
		violations, err := check.Compare(ctx, tx, keys, l.Now())
		for _, v := range violations {
			found = append(found, v.Invariant)
		}
		return err
	})
	return found
}

func (l checkedLedger) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, statement, args...)
		return err
	})
}

// A book is added up whole at first and hourly, and incrementally in
// between. A transaction that commits long after its booking raises no alarm.
func TestBookCheckGoesOn(t *testing.T) {
	l, check := checkedLedger{ledgertest.New(t)}, &postgres.BookCheck{}
	l.Start(t, "acme", "scale")
	first := l.chargeRange(t, "acme", 10, ledgertest.November)
	l.Pass(time.Hour)
	if found := l.checked(t, check, first); len(found) > 0 {
		t.Fatalf("at first: %v", found)
	}
	late := l.chargeRange(t, "acme", 20, ledgertest.November.Add(time.Minute)) // booked before the first check, committed after it
	if found := l.checked(t, check, late); len(found) > 0 {
		t.Errorf("after a late commit: %v", found)
	}
	l.exec(t, `UPDATE transfers SET amount = amount + 1 WHERE "offset" = $1`, first.First)
	if found := l.checked(t, check, l.chargeRange(t, "acme", 30, l.Pass(20*time.Minute))); len(found) > 0 {
		t.Errorf("what was added up before is read again: %v", found)
	}
	if found := l.checked(t, &postgres.BookCheck{}, late); len(found) != 1 || found[0] != ledger.BalanceIsTransfers {
		t.Errorf("a check that begins finds %v", found)
	}
	if found := l.checked(t, check, l.chargeRange(t, "acme", 40, l.Pass(time.Hour))); len(found) != 1 || found[0] != ledger.BalanceIsTransfers {
		t.Errorf("a check that goes on finds %v within the hour", found)
	}
}

// A change to a checked book is found.
func TestBookCheckFinds(t *testing.T) {
	for name, tamper := range map[string]string{
		"a transfer that is lost":     `DELETE FROM transfers WHERE "offset" = $1`,
		"a transfer that was changed": `UPDATE transfers SET amount = amount + 7 WHERE "offset" = $1`,
		"a balance that was changed":  `UPDATE books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE $1 > 0`,
		"a transfer that nobody booked": `INSERT INTO transfers (organization, effective_at, source, partition, "offset", line, period_start, from_account, to_account,
			amount, entries, reason, project, key, event, booked_at)
			SELECT organization, effective_at, source, partition, 99, line, period_start, from_account, to_account,
			amount, entries, reason, project, key, event, booked_at FROM transfers WHERE "offset" = $1`,
	} {
		t.Run(name, func(t *testing.T) {
			l, check := checkedLedger{ledgertest.New(t)}, &postgres.BookCheck{}
			l.Start(t, "acme", "scale")
			if found := l.checked(t, check, l.chargeRange(t, "acme", 5, l.Pass(time.Hour))); len(found) > 0 {
				t.Fatalf("at first: %v", found)
			}
			r := l.chargeRange(t, "acme", 10, l.Pass(20*time.Minute))
			also := l.chargeRange(t, "acme", 10, r.Booked)
			l.exec(t, tamper, r.First)
			if found := l.checked(t, check, also); len(found) != 1 || found[0] != ledger.BalanceIsTransfers {
				t.Errorf("found %v", found)
			}
		})
	}
}

// The books of a transaction are found in all its partitions, whenever
// charges count, even with fewer transfers than charges.
func TestBooksOfATransactionAreFound(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	booked := l.Now()
	var ranges []ledger.Range
	for partition, organization := range []string{"acme", "beta"} {
		l.Start(t, organization, "scale")
		l.Pass(-time.Hour)
		r := l.chargeRange(t, organization, 10, booked)
		r.Partition = partition
		ranges = append(ranges, r)
		l.SetPosition(t, partition, r.Next, [16]byte{1}, "")
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		if err := postgres.SaveRanges(ctx, tx, ranges); err != nil {
			return err
		}
		return postgres.FollowRanges(ctx, tx)
	})
	l.findsBooks(t, ranges[0], 2)
	l.exec(t, `UPDATE ranges SET charged = 1000000000 WHERE partition = 1`)
	l.findsBooks(t, ranges[0], 2)
}

// The books of a transaction are found where its last day has no charge.
func TestBooksOfTheDayBeforeAreFound(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Start(t, "acme", ledger.Scale)
	r := l.chargeRange(t, "acme", 10, l.Now())
	r.To = l.Pass(24 * time.Hour) // of a request that was not charged
	l.chargeRange(t, "acme", 10, l.Now())
	l.findsBooks(t, r, 1)
}

func (l checkedLedger) findsBooks(t *testing.T, of ledger.Range, want int) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		keys, err := postgres.TouchedBy(ctx, tx, of, 20)
		if len(keys) != want {
			t.Errorf("found %v, want %d books", keys, want)
		}
		return err
	})
}
