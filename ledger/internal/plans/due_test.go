package plans_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// Periods end, and grants start and expire, without any request. Late
// charges are adjustments.
func TestWhatIsDueIsDone(t *testing.T) {
	l := ledgertest.Acme(t)
	late := l.NewCharge("acme", 7)
	scheduled := ledgertest.GrantOf(50)
	scheduled.Starts, scheduled.Expires = l.Now().AddDate(0, 0, 2), l.Now().AddDate(0, 0, 12)
	made := l.GrantAcme(t, scheduled)
	if made.Status != ledger.GrantScheduled || made.Remaining != 0 {
		t.Errorf("grant %+v", made)
	}
	l.SetClock(time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC))
	l.AdvanceAll(t)
	l.Book(t, late)
	l.AdvanceAll(t)
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 150 || b.Used() != 7 || b.Remaining() != 93 { // the grant expired in December
		t.Errorf("in December: %+v", b)
	}
	found, err := l.Grants.List(t.Context(), "acme", postgres.GrantCursor{}, 1)
	if err != nil || found[0].Status != ledger.GrantExpired || found[0].Expired != 50 {
		t.Errorf("grants %+v, error %v", found, err)
	}
	want := append(closings(2), ledger.GrantExpiring, ledger.PeriodClosed, ledger.GrantHasExpired, ledger.StatementReady)
	if got := l.Events(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	l.CheckSound(t)
}

// Concurrent advancers take different organizations, and nothing is done twice.
func TestAdvancersShareTheWork(t *testing.T) {
	l := ledgertest.New(t)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		l.Start(t, id, ledger.Indie)
	}
	var wait sync.WaitGroup
	for range 3 {
		wait.Go(func() {
			for range 5 {
				if _, err := l.Plans.Advance(t.Context(), l.Pool, l.DatabaseNow()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	l.AdvanceAll(t)
	if got := len(l.Events()); got != 6*4 {
		t.Errorf("%d events, want September and October closed for each of 6, with their statements", got)
	}
	l.CheckSound(t)
}

// A failing organization waits alone, even if more fail than fit a transaction.
func TestWhatFailsKeepsNobodyWaiting(t *testing.T) {
	l := ledgertest.New(t)
	const failing = 25
	l.Start(t, "sound", ledger.Indie)
	for i := range failing {
		l.Start(t, fmt.Sprint("failing", i), ledger.Indie)
	}
	count := func(decisions int) {
		l.As(t, func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE organizations SET decisions = decisions + $1, due_at = due_at - interval '1 day'
				WHERE organization LIKE 'failing%'`, decisions)
			return err
		})
	}
	count(7) // too high: the next decision's number is wrong
	advanced, err := l.Plans.Advance(t.Context(), l.Pool, l.DatabaseNow())
	if err == nil || !strings.Contains(err.Error(), `of 25 organizations, the first: organization "failing`) || advanced != 1 {
		t.Errorf("%d advanced, error %v", advanced, err)
	}
	closed := closings(2)
	if got := l.Events(); !slices.Equal(got, closed) {
		t.Errorf("events %v, want %v", got, closed)
	}
	count(-7)
	if advanced, err := l.Plans.Advance(t.Context(), l.Pool, l.DatabaseNow()); err != nil || advanced != failing {
		t.Errorf("%d advanced, error %v", advanced, err)
	}
	l.CheckSound(t)
}
