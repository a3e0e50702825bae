package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/parked"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Verify finds tampering.
func TestVerifyFinds(t *testing.T) {
	tests := map[string]string{
		ledger.BalanceIsTransfers: `UPDATE books SET grant_left = grant_left + 1, consumed = consumed - 1 WHERE consumed > 0`,
		ledger.UsageIsCharges:     `WITH h AS (UPDATE usage_hours SET bytes = bytes + 1) UPDATE usage_days SET bytes = bytes + 1`,
		ledger.HoursAreDays:       `UPDATE usage_hours SET entries = entries + 1`,
	}
	for invariant, tamper := range tests {
		t.Run(invariant, func(t *testing.T) {
			l := ledgertest.New(t)
			l.Start(t, "acme", ledger.Indie)
			l.Book(t, l.NewCharge("acme", 30))
			l.As(t, func(ctx context.Context, tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, tamper); err != nil {
					return err
				}
				violations, err := postgres.Verify(ctx, tx, l.Balances.Kept, l.Now())
				if len(violations) == 0 || slices.ContainsFunc(violations, func(v ledger.Violation) bool { return v.Invariant != invariant }) {
					t.Errorf("violations %v", violations)
				}
				return err
			})
		})
	}
}

// A discarded record leaves no gap between ranges; a missing one does.
func TestDiscardedRecordsLeaveNoGap(t *testing.T) {
	l := ledgertest.New(t)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		err := postgres.SaveRanges(ctx, tx, []ledger.Range{{First: 0, Next: 3, Records: 3}, {First: 4, Next: 6, Records: 2}, {First: 7, Next: 8, Records: 1}})
		if err != nil {
			return err
		}
		unreadable := bus.Record{Topic: contract.TopicLogs, Offset: 3, Value: []byte("{")}
		if err := parked.Add(ctx, tx, contract.GroupLedger, unreadable, errors.New("it is no JSON")); err != nil {
			return err
		}
		if n, err := parked.Discard(ctx, tx, parked.Filter{}); err != nil || n != 1 {
			t.Errorf("%d discarded, error %v", n, err)
		}
		violations, err := postgres.Verify(ctx, tx, l.Balances.Kept, l.Now())
		if len(violations) != 1 || violations[0].Invariant != ledger.RangesFollow || violations[0].Detail != "partition 0 before 7: 1 and 0" {
			t.Errorf("violations %v", violations)
		}
		return err
	})
}

// The database refuses books that do not sum to zero.
func TestDatabaseRefusesUnsoundBooks(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	l.Book(t, l.NewCharge("acme", 30))
	for _, tamper := range []string{
		`UPDATE books SET consumed = consumed + 1`,
		`UPDATE books SET grant_left = -1, consumed = consumed + grant_left + 1`,
		`INSERT INTO transfers (organization, effective_at, source, partition, "offset", line, period_start, from_account, to_account,
			amount, entries, reason, project, key, event, booked_at)
			SELECT organization, effective_at, source, partition, "offset", 99, period_start, 1, 1, 5, 0, 2, '', '', '', now() FROM transfers`,
	} {
		err := l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, tamper)
			return err
		})
		if !pg.IsData(err) {
			t.Errorf("%s: error %v", tamper, err)
		}
	}
}

// Offsets accepted as lost leave no gap; accepting twice keeps one range.
func TestAcceptedLossLeavesNoGap(t *testing.T) {
	l := ledgertest.New(t)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		if err := postgres.SaveRanges(ctx, tx, []ledger.Range{{First: 0, Next: 3, Records: 3}}); err != nil {
			return err
		}
		for range 2 {
			if err := postgres.SaveLost(ctx, tx, 0, 1000); err != nil {
				return err
			}
		}
		if err := postgres.SaveLost(ctx, tx, 1, 1000); err != nil { // nothing of it was ever booked
			return err
		}
		if err := postgres.SaveRanges(ctx, tx, []ledger.Range{{First: 1000, Next: 1001, Records: 1}, {Partition: 1, First: 1000, Next: 1001, Records: 1}}); err != nil {
			return err
		}
		violations, err := postgres.Verify(ctx, tx, l.Balances.Kept, l.Now())
		if len(violations) != 0 {
			t.Errorf("violations %v", violations)
		}
		return err
	})
}

// Accounts published again are newer than any of the later books.
func TestRaisedVersions(t *testing.T) {
	l := ledgertest.New(t)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT setval('versions', 1)`); err != nil {
			return err
		}
		if err := postgres.RaiseVersions(ctx, tx); err != nil {
			return err
		}
		var next, now int64
		err := tx.QueryRow(ctx, `SELECT nextval('versions'), (extract(epoch FROM clock_timestamp() - interval '1 minute') * 1000000)::bigint`).Scan(&next, &now)
		if next < now {
			t.Errorf("the next version is %d, a minute ago it was %d microseconds", next, now)
		}
		return err
	})
}

// A whole check takes as many statements for thirty organizations as for one.
func TestAWholeCheckAsksOnce(t *testing.T) {
	pool, statements := pgtest.Counted(t, pgtest.Open(t, postgres.Schema, postgres.Migrations()...))
	l := checkedLedger{ledgertest.On(t, pool)}
	asked := func() int64 {
		return statements.Of(func() {
			if found := l.verified(t); len(found) > 0 {
				t.Errorf("found %v", found)
			}
		})
	}
	begin := func(organizations int) {
		for n := range organizations {
			organization := fmt.Sprintf("org_%d_%d", organizations, n)
			l.Start(t, organization, ledger.Scale)
			l.chargeRange(t, organization, 1, l.Now())
		}
	}
	begin(1)
	one := asked()
	begin(30)
	if many := asked(); many != one || one == 0 {
		t.Errorf("%d statements for one organization, %d for thirty", one, many)
	}
}
