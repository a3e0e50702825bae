package plans_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// A period closes once everything accepted in it is booked, by all
// replicas: not while a partition lags behind the log's end of then, is
// stopped or is of another topic, nor without brokers. Later records
// are not awaited.
func TestAPeriodIsClosedOnceTheLogIsBooked(t *testing.T) {
	l := ledgertest.Acme(t)
	l.SetClock(time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC))
	topic, other := [16]byte{1}, [16]byte{2}
	var failure error
	end := snapshot.End{Topic: topic, Next: contract.Positions{0: 10, 1: 0, 2: 7}}
	advancer := &plans.Advancer{
		Service: l.Plans, Pool: l.Pool, Logger: slog.New(slog.DiscardHandler), Wake: func() {},
		End: func(context.Context) (snapshot.End, error) { return end, failure },
	}
	before := len(l.Events())
	step := func(name string, fails error, closed int) {
		t.Helper()
		failure = fails
		if err := advancer.RunOnce(t.Context()); !errors.Is(err, fails) {
			t.Errorf("%s: error %v", name, err)
		}
		if kinds := l.Events()[before:]; len(kinds) != closed || closed > 0 && !slices.Contains(kinds, ledger.PeriodClosed) {
			t.Errorf("%s: events %v", name, kinds)
		}
	}
	step("no brokers", errors.New("no brokers"), 0)
	step("nothing is booked", nil, 0)
	l.SetPosition(t, 0, 10, topic, "")
	step("a partition was never consumed", nil, 0)
	l.SetPosition(t, 2, 6, topic, "")
	step("a partition is behind", nil, 0)
	l.SetPosition(t, 2, 7, topic, "stopped")
	step("a partition is stopped", nil, 0)
	l.SetPosition(t, 2, 7, other, "")
	step("a position is of another topic", nil, 0)
	end.Next = contract.Positions{0: 1000, 1: 1000, 2: 1000}
	l.SetPosition(t, 2, 7, topic, "")
	step("all is booked", nil, 2) // with the statement
}

// An organization whose books are locked when it is due, as under
// constant load, is awaited.
func TestWhoIsAlwaysChargedIsAdvanced(t *testing.T) {
	l := ledgertest.Acme(t)
	l.SetClock(time.Date(2026, 12, 3, 0, 0, 0, 0, time.UTC))
	charging, err := l.Pool.Begin(t.Context())
	testenv.Must(t, err)
	defer func() { _ = charging.Rollback(context.WithoutCancel(t.Context())) }()
	if _, err := charging.Exec(t.Context(), `SELECT set_config('weir.organization', '*', true)`); err != nil {
		t.Fatal(err)
	}
	if _, err := charging.Exec(t.Context(), `SELECT FROM organizations FOR NO KEY UPDATE`); err != nil {
		t.Fatal(err)
	}
	type result struct {
		advanced int
		err      error
	}
	done := make(chan result, 1)
	go func() {
		advanced, err := l.Plans.Advance(t.Context(), l.Pool, l.Now())
		done <- result{advanced, err}
	}()
	testenv.Eventually(t, func() error {
		select {
		case r := <-done:
			t.Fatalf("%d were advanced without waiting, error %v", r.advanced, r.err)
		default:
		}
		var waiting bool
		err := l.Pool.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waiting)
		if err == nil && !waiting {
			err = errors.New("nobody waits yet")
		}
		return err
	})
	testenv.Must(t, charging.Commit(t.Context()))
	if r := <-done; r.err != nil || r.advanced != 1 {
		t.Errorf("%d were advanced, error %v", r.advanced, r.err)
	}
}

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
