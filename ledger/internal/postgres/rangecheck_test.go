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

// A range over several days is compared with the transfers of all.
func TestCheckRangesOverDays(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Start(t, "acme", ledger.Scale)
	first := l.NewCharge("acme", 1000)
	l.Pass(24 * time.Hour)
	second := l.NewCharge("acme", 500)
	charges := []ledger.Charge{first, second}
	r := ledger.RangesOf(charges, charges, l.Now())[0]
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := l.Booking.Charge(ctx, tx, r.Booked, charges)
		return err
	})
	l.wantRange(t, r, 0)
	l.exec(t, `UPDATE transfers SET amount = amount + 1 WHERE "offset" = $1 AND reason = 2`, first.Cause.Offset)
	l.wantRange(t, r, 1)
	l.exec(t, `UPDATE transfers SET amount = amount - 1 WHERE "offset" = $1 AND reason = 2`, first.Cause.Offset)
	l.exec(t, `DELETE FROM transfers WHERE "offset" = $1 AND reason = 2`, second.Cause.Offset)
	l.wantRange(t, r, 1)
}

// A range is found where its transfers lie before earlier bookings, and
// so is a change in it.
func TestCheckRangesOutOfOrder(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Start(t, "acme", ledger.Scale)
	booked := l.Now()
	first := l.chargeRange(t, "acme", 1000, booked)
	charges := make([]ledger.Charge, 200) // on several pages
	for i := range charges {
		charges[i] = l.NewCharge("acme", 1)
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := l.Booking.Charge(ctx, tx, booked.Add(-time.Hour), charges)
		return err
	})
	last := l.chargeRange(t, "acme", 10, booked.Add(time.Hour))
	l.wantRange(t, first, 0)
	l.wantRange(t, last, 0)
	for _, r := range []ledger.Range{first, last} {
		l.exec(t, `UPDATE transfers SET amount = amount + 1 WHERE "offset" = $1 AND reason = 2`, r.First)
		l.wantRange(t, r, 1)
	}
}

// A reader without write access finds differences too.
func TestReadersCheckRanges(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Start(t, "acme", ledger.Scale)
	r := l.chargeRange(t, "acme", 10, l.Now())
	l.exec(t, `DROP FUNCTION summarize_days(regclass, date, date)`)
	l.exec(t, `UPDATE transfers SET amount = amount + 1 WHERE "offset" = $1 AND reason = 2`, r.First)
	l.wantRange(t, r, 1)
}

// wantRange compares a range and expects so many violations.
func (l checkedLedger) wantRange(t *testing.T, r ledger.Range, violations int) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		found, err := postgres.CheckRanges(ctx, tx, []ledger.Range{r})
		if len(found) != violations {
			t.Errorf("found %v, want %d violations", found, violations)
		}
		return err
	})
}
