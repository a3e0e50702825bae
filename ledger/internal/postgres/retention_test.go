package postgres_test

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/testenv"
)

// prune prunes the ledger's tables as of its clock.
func (l checkedLedger) prune(t *testing.T) {
	t.Helper()
	l.pruneKept(t, ledger.DefaultRetention())
}

func (l checkedLedger) count(t *testing.T, table string) (n int) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT count(*) FROM `+table).Scan(&n)
	})
	return n
}

// Transfers go after 25 months and leave their sums, so that books
// still agree, even half folded. Books go after ten years.
func TestTransfersFold(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Start(t, "acme", ledger.Scale)
	var last ledger.Range
	for range 4 {
		last = l.chargeRange(t, "acme", 10, l.Now())
		l.chargeRange(t, "other", 5, l.Pass(24*time.Hour))
	}
	whole := l.count(t, "transfers")
	l.prune(t)
	if n := l.count(t, "transfers"); n != whole {
		t.Fatalf("%d of %d transfers are left at once", n, whole)
	}
	l.SetClock(ledgertest.November.AddDate(0, 25, 2)) // two of the days are too old
	l.prune(t)
	if n, folded := l.count(t, "transfers"), l.count(t, "folded_transfers"); n == 0 || n == whole || folded == 0 {
		t.Fatalf("%d of %d transfers are left, and %d sums", n, whole, folded)
	}
	l.CheckSound(t)
	if found := l.checked(t, &postgres.BookCheck{}, last); len(found) > 0 {
		t.Errorf("the running check finds %v", found)
	}
	if days := l.count(t, "usage_days"); days != 5 {
		t.Errorf("usage has %d rows, want those of the days that are left", days)
	}
	if _, err := l.Balances.Balance(t.Context(), "acme", ledgertest.November.Add(time.Hour)); err != ledger.ErrNotKept { //nolint:errorlint // exactly it
		t.Errorf("the balance of then: %v", err)
	}
	l.exec(t, `UPDATE folded_transfers SET amount = amount + 1 WHERE organization = 'other'`)
	if found := l.verified(t); len(found) != 1 || found[0] != ledger.BalanceIsTransfers {
		t.Errorf("sums that were tampered with: %v", found)
	}
	l.SetClock(ledgertest.November.AddDate(10, 2, 0))
	l.prune(t)
	for _, table := range []string{"transfers", "folded_transfers", "books", "usage_days", "usage_hours"} {
		if n := l.count(t, table); n != 0 {
			t.Errorf("%d rows of %s are left after ten years", n, table)
		}
	}
}

// A fold after the removal of the book succeeds without it.
func TestFoldWithoutBook(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.chargeRange(t, "acme", 10, l.Now())
	l.exec(t, `DELETE FROM books`)
	l.SetClock(ledgertest.November.AddDate(0, 26, 0))
	l.prune(t)
	if transfers, sums := l.count(t, "transfers"), l.count(t, "folded_transfers"); transfers != 0 || sums != 0 {
		t.Errorf("%d transfers and %d sums are left", transfers, sums)
	}
}

// verified returns the violations of a full check.
func (l checkedLedger) verified(t *testing.T) (found []string) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		violations, err := postgres.Verify(ctx, tx, l.Balances.Kept, l.Now())
		for _, v := range violations {
			found = append(found, v.Invariant)
		}
		return err
	})
	return found
}

// A check that began before a fold sees the transfers; the fold waits for it.
func TestFoldWaitsForChecks(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.chargeRange(t, "acme", 10, l.Now())
	l.SetClock(ledgertest.November.AddDate(0, 26, 0))
	fold := postgres.Tables(l.Now, ledger.DefaultRetention(), erasure.Retention{})[0]
	l.As(t, func(ctx context.Context, check pgx.Tx) error {
		if err := postgres.HoldDays(ctx, check); err != nil {
			return err
		}
		err := l.Try(ctx, func(ctx context.Context, tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1ms'`); err != nil {
				return err
			}
			_, _, err := fold.Prune(ctx, tx)
			return err
		})
		if err == nil {
			t.Error("the day is folded while a check reads")
		}
		return nil
	})
	l.prune(t)
	if n := l.count(t, "transfers"); n != 0 {
		t.Errorf("%d transfers are left", n)
	}
}

// Ranges go after 8 days, except the newest of each partition, which
// holds the position.
func TestRangesGo(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ($1, $2, 0, 9, 1, ''), ($1, $2, 1, 9, 1, '')`,
			contract.GroupLedger, contract.TopicLogs)
		if err != nil {
			return err
		}
		for _, r := range []ledger.Range{
			{Partition: 0, First: 0, Next: 1, Booked: l.Now().AddDate(0, 0, -10)},
			{Partition: 0, First: 1, Next: 2, Booked: l.Now().AddDate(0, 0, -9)},
			{Partition: 0, First: 2, Next: 9, Booked: l.Now().AddDate(0, 0, -7)},
			{Partition: 1, First: 0, Next: 8, Booked: l.Now().AddDate(0, 0, -30)},
			{Partition: 1, First: 8, Next: 9, Booked: l.Now().AddDate(0, 0, -20)},
		} {
			r.From, r.To = r.Booked, r.Booked
			if err := postgres.SaveRanges(ctx, tx, []ledger.Range{r}); err != nil {
				return err
			}
		}
		_, err = tx.Exec(ctx, `WITH sealed AS (INSERT INTO seals (hour, root) VALUES ($1, '')) INSERT INTO cuts (partition, hour, next_offset) VALUES (0, $1, 9), (1, $1, 9)`, l.Now())
		return err
	})
	l.prune(t)
	if n := l.count(t, "ranges"); n != 2 {
		t.Errorf("%d ranges are left, want the young one and the newest of the idle partition", n)
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		applied, err := postgres.PositionsAt(ctx, tx, l.Now())
		if applied[0] != 9 || applied[1] != 9 {
			t.Errorf("applied through %v", applied)
		}
		return err
	})
}

// Ranges of unsealed hours stay, however old: they locate the charges
// of a link.
func TestUnsealedRangesStay(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.exec(t, `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ('`+contract.GroupLedger+`', '`+contract.TopicLogs+`', 0, 9, 1, '')`)
	noon := ledgertest.November
	l.Apply(t, l.NewCharge("acme", 1))
	l.Pass(time.Hour)
	for range 3 {
		l.Apply(t, l.NewCharge("acme", 10))
		l.Pass(time.Second)
	}
	testenv.Must(t, integrity.Seal(t.Context(), l.Pool, noon.Add(time.Hour)))
	l.Pass(9 * 24 * time.Hour) // unsealed
	l.prune(t)
	testenv.Must(t, integrity.Seal(t.Context(), l.Pool, l.Now()))
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		var bytes int64
		err := tx.QueryRow(ctx, `SELECT coalesce(sum(bytes), 0) FROM links`).Scan(&bytes)
		if bytes != 31 {
			t.Errorf("links have %d bytes, want 31", bytes)
		}
		return err
	})
	l.CheckSound(t)
	l.prune(t)
	if n := l.count(t, "ranges"); n != 1 {
		t.Errorf("%d ranges are left once they are sealed", n)
	}
}

// A deleted organization keeps its row as long as its books. Then
// nothing is left of it.
func TestDeletedOrganizationsGoAfterTheirBooks(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	for _, organization := range []string{"acme", "other"} {
		l.Start(t, organization, ledger.Scale)
		l.chargeRange(t, organization, 10, l.Now())
	}
	l.exec(t, `INSERT INTO erasures (organization, project, begun_at, gone_by, erased_at, published_at)
		SELECT 'acme', project, at, at, at, at FROM unnest(ARRAY['', 'shop']) project, (SELECT opened_at AS at FROM organizations LIMIT 1) o`)
	left := func(table string) int { return l.count(t, table+` WHERE organization = 'acme'`) }
	l.SetClock(ledgertest.November.AddDate(0, 26, 0))
	l.prune(t)
	if rows, known := left("organizations"), left("erasures"); rows != 1 || known != 1 {
		t.Errorf("with books there are %d rows of it, and %d of 2 deletions are known", rows, known)
	}
	l.SetClock(ledgertest.November.AddDate(10, 2, 0))
	l.prune(t)
	for _, table := range []string{"organizations", "erasures", "chains", "links", "events", "unpublished"} {
		if rows := left(table); rows != 0 {
			t.Errorf("%s has %d rows of it", table, rows)
		}
	}
	if rows := l.count(t, `organizations WHERE organization = 'other'`); rows != 1 {
		t.Errorf("the other organization has %d rows", rows)
	}
}

// threeMonths are the shortest that books may be kept.
var threeMonths = ledger.Retention{Hours: 1, Transfers: 3, Books: 3}

// Of monthly decisions only those in force outlive the books; the chain
// still verifies.
func TestPastDecisionsGo(t *testing.T) {
	l := checkedLedger{ledgertest.New(t)}
	l.Balances.Kept = threeMonths
	l.Start(t, "acme", ledger.Scale)
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		_, err := l.Grants.Grant(ctx, "acme", by, ledger.Grant{Amount: 7, Priority: ledger.PlanPriority})
		return err
	})
	l.subscribe(t, 1<<41, "", true)
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		both := []ledger.BudgetSpec{{Spender: ledger.Spender{Project: "shop"}, Bytes: 5}, {Spender: ledger.Spender{Project: "blog"}, Bytes: 5}}
		_, err := l.Budgets.SetAll(ctx, "acme", by, both)
		return err
	})
	var left []int
	for month := range 10 {
		l.aMonthOfDecisions(t)
		l.SetClock(ledgertest.November.AddDate(0, month+1, 0))
		l.AdvanceAll(t)
		testenv.Must(t, integrity.Seal(t.Context(), l.Pool, l.Now().Add(-time.Hour)))
		l.pruneKept(t, threeMonths)
		left = append(left, l.count(t, "events"))
		l.CheckSound(t)
	}
	if most := slices.Max(left[:6]); left[3] <= left[1] || slices.Max(left) > most {
		t.Errorf("month by month %d decisions are left", left)
	}
	l.setBudget(t, "blog", 6) // the other is in force by the decision about both
	l.SetClock(ledgertest.November.AddDate(2, 0, 0))
	l.AdvanceAll(t)
	testenv.Must(t, integrity.Seal(t.Context(), l.Pool, l.Now().Add(-time.Hour)))
	for range 2 {
		l.pruneKept(t, threeMonths)
	}
	want := []string{"plan_started", "granted", "plan_changed", "budgets_changed", "suspension_changed", "budgets_changed", "advanced"}
	if found := l.decisions(t); !slices.Equal(found, want) {
		t.Errorf("years later there are %q, want %q", found, want)
	}
	l.CheckSound(t)
	l.setBudget(t, "shop", 6) // still gets the next number
}

// aMonthOfDecisions makes decisions without lasting effect, as a plan
// that is scheduled and cancelled.
func (l checkedLedger) aMonthOfDecisions(t *testing.T) {
	t.Helper()
	l.subscribe(t, 1<<40, ledger.PeriodEnd, true)
	l.subscribe(t, 1<<41, "", true)
	l.subscribe(t, 1<<41, "", false)
	l.subscribe(t, 1<<41, "", true)
	l.setBudget(t, "gone", 5)
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		_, err := l.Budgets.Remove(ctx, "acme", by, ledger.Spender{Project: "gone"})
		return err
	})
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		_, err := l.Grants.Adjust(ctx, "acme", by, -3, "", time.Time{})
		return err
	})
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		made, err := l.Grants.Grant(ctx, "acme", by, ledger.Grant{Amount: 9, Priority: ledger.PlanPriority})
		if err == nil {
			_, err = l.Grants.Void(ctx, "acme", by, made.ID)
		}
		return err
	})
}

func (l checkedLedger) decide(t *testing.T, decide func(ctx context.Context, by unitofwork.Request) error) {
	t.Helper()
	testenv.Must(t, decide(t.Context(), unitofwork.Request{Actor: "tok_1"}))
}

func (l checkedLedger) subscribe(t *testing.T, quota int64, effective string, suspended bool) {
	t.Helper()
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		plan := ledger.Plan{Tier: ledger.Scale, Quota: quota}
		_, err := l.Plans.Subscribe(ctx, "acme", by, ledger.Subscription{Plan: plan, Effective: effective, Suspended: &suspended})
		return err
	})
}

func (l checkedLedger) setBudget(t *testing.T, project string, bytes int64) {
	t.Helper()
	l.decide(t, func(ctx context.Context, by unitofwork.Request) error {
		_, err := l.Budgets.Set(ctx, "acme", by, ledger.BudgetSpec{Spender: ledger.Spender{Project: project}, Bytes: bytes})
		return err
	})
}

// decisions returns the kinds of those left.
func (l checkedLedger) decisions(t *testing.T) (kinds []string) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT name FROM events ORDER BY version`)
		if err == nil {
			kinds, err = pgx.CollectRows(rows, pgx.RowTo[string])
		}
		return err
	})
	for i, kind := range kinds {
		kinds[i] = strings.TrimPrefix(kind, "ledger.v1.")
	}
	return kinds
}

// pruneKept is prune with another retention.
func (l checkedLedger) pruneKept(t *testing.T, kept ledger.Retention) {
	t.Helper()
	err := prune.New(prune.Config{
		Pool: l.Pool, Tables: func(clock func() time.Time) []prune.Table { return postgres.Tables(clock, kept, erasure.Retention{}) }, Clock: l.Now,
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	}).RunOnce(t.Context())
	testenv.Must(t, err)
}
