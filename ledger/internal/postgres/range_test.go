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

// Checked ranges of ten seconds become one: not the last, none with a
// record that is no charge, none while an hour has no root, and none
// beyond a checkpoint. They are compared as exactly as before.
func TestRangesAreJoined(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Start(t, "acme", ledger.Scale)
	var ranges []ledger.Range
	for i := range 9 {
		r := l.chargeRange(t, "acme", 10, l.Pass(time.Second/2))
		if i == 6 {
			r.Charged = 0
		}
		ranges = append(ranges, r)
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error { return postgres.SaveRanges(ctx, tx, ranges) })
	first, last := ranges[0].First, ranges[8].Next
	l.exec(t, `INSERT INTO checked_ranges VALUES (0, $1)`, last)
	l.wantJoined(t, l.Now(), 9) // their time has not ended
	l.exec(t, `INSERT INTO seals (hour) VALUES ($1)`, ledgertest.November)
	l.wantJoined(t, l.Pass(time.Minute), 9)
	l.exec(t, `DELETE FROM seals`)
	l.exec(t, `INSERT INTO checkpoints (hour, topic_id, positions, decision, hash) VALUES ($1, gen_random_uuid(), jsonb_build_object('0', $2::bigint), 0, '')`,
		ledgertest.November, first+2)
	l.wantJoined(t, l.Now(), 6) // 0, 1, 2 to 5, 6, 7, 8
	l.exec(t, `DELETE FROM checkpoints`)
	l.wantJoined(t, l.Now(), 4) // 0 to 5, 6, 7, 8
	l.wantJoined(t, l.Now(), 4)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		joined, err := postgres.RangesOf(ctx, tx, 0, 0, 10)
		if r := joined[0]; r.First != first || r.Records != 6 || r.ChargedBytes != 60 || !r.BookedFrom.Equal(ranges[0].Booked) || !r.Booked.Equal(ranges[5].Booked) {
			t.Errorf("joined to %+v", r)
		}
		return err
	})
	l.exec(t, `UPDATE ranges SET charged = 1 WHERE first_offset = $1`, ranges[6].First)
	l.wantVerified(t, 0)
	l.exec(t, `UPDATE ranges SET booked_from = booked_from - interval '1 second' WHERE first_offset = $1`, first)
	l.wantVerified(t, 1)
}

func (l checkedLedger) wantJoined(t *testing.T, now time.Time, ranges int) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error { return postgres.JoinRanges(ctx, tx, now) })
	if n := l.count(t, "ranges"); n != ranges {
		t.Errorf("%d ranges are left, want %d", n, ranges)
	}
}

// wantVerified verifies all and expects so many differing ranges.
func (l checkedLedger) wantVerified(t *testing.T, violations int) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		found, err := postgres.Verify(ctx, tx, ledger.DefaultRetention(), l.Now())
		differing := 0
		for _, v := range found {
			if v.Invariant == ledger.RangeIsTransfers || v.Invariant == ledger.RangesFollow {
				differing++
			}
		}
		if differing != violations {
			t.Errorf("found %v, want %d differing ranges", found, violations)
		}
		return err
	})
}
