package balances_test

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// The balance at an instant is that of its period, as booked by then.
func TestBalanceAt(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	later, december := ledgertest.November.Add(time.Hour), ledgertest.November.AddDate(0, 1, 0)
	l.Book(t, l.NewCharge("acme", 30))
	l.SetClock(later)
	l.Book(t, l.NewCharge("acme", 20))
	l.SetClock(december)
	l.Book(t, l.NewCharge("acme", 5))
	tests := []struct {
		at   time.Time
		used int64
	}{
		{ledgertest.November.Add(-time.Second), 0}, {ledgertest.November, 30}, {later.Add(-time.Microsecond), 30}, {later, 50},
		{december.AddDate(0, 0, -1), 0}, {december, 5},
	}
	for _, test := range tests {
		b, err := l.Balances.Balance(t.Context(), "acme", test.at)
		testenv.Must(t, err)
		if b.Book.Used() != test.used || b.Book.Granted() != 100 {
			t.Errorf("at %s used %d of %d, want %d", test.at, b.Book.Used(), b.Book.Granted(), test.used)
		}
	}
	l.CheckSound(t)
}

// A past balance never changes, even while an open transaction has
// booked at its instant.
func TestBalanceAtIsRepeatable(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	if _, err := l.Pool.Exec(t.Context(), `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ('g', 't', 0, 0, 1, '')`); err != nil {
		t.Fatal(err)
	}
	open, end, booked := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		booked <- l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `UPDATE bus_positions SET next = 1`)
			if err == nil {
				_, err = l.Booking.Charge(ctx, tx, l.Now(), []ledger.Charge{l.NewCharge("acme", 30)})
			}
			close(open)
			<-end
			return err
		})
	}()
	<-open
	at := l.Now()
	l.Pass(time.Second)
	asked := make(chan int64, 1)
	go func() {
		b, err := l.Balances.Balance(t.Context(), "acme", at)
		if err != nil {
			t.Error(err)
		}
		asked <- b.Book.Used()
	}()
	testenv.Eventually(t, func() error {
		var waiting bool
		err := l.Pool.QueryRow(t.Context(), `SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR SHARE'
			AND datname = current_database()`).Scan(&waiting)
		if err == nil && !waiting && len(asked) == 0 {
			err = errors.New("nobody waits")
		}
		return err
	})
	close(end)
	testenv.Must(t, <-booked)
	first := <-asked
	again, err := l.Balances.Balance(t.Context(), "acme", at)
	if err != nil || again.Book.Used() != first {
		t.Errorf("used at %s is first %d, then %d (%v)", at, first, again.Book.Used(), err)
	}
}

// A balance has its lag behind the log. Without brokers it comes
// without, and they are not queried each time.
func TestBooking(t *testing.T) {
	l, asked := ledgertest.Acme(t), 0
	var failure error
	l.Balances.Waiter.End = func(context.Context) (snapshot.End, error) {
		asked++
		return snapshot.End{Next: contract.Positions{0: 12, 1: 5}}, failure
	}
	l.SetPosition(t, 0, 10, [16]byte{1}, "")
	l.SetPosition(t, 1, 5, [16]byte{1}, "")
	charge := l.NewCharge("acme", 1)
	charge.Cause.Offset = 9
	l.Book(t, charge)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return l.Booking.NoteApplied(ctx, tx, ledger.RangesOf([]ledger.Charge{charge}, nil, l.Now()))
	})
	l.Pass(3 * time.Second)
	if b := l.BalanceNow(t, "acme").Booking; b == nil || !b.Known || b.Behind != 2 || b.Lag != 3*time.Second {
		t.Errorf("booking %+v", b)
	}
	failure = errors.New("no brokers")
	l.Pass(2 * time.Second)
	for range 3 {
		if b := l.BalanceNow(t, "acme"); b.Book.Used() != 1 || b.Booking.Known {
			t.Errorf("balance %+v, booking %+v", b.Book, b.Booking)
		}
	}
	if asked != 2 {
		t.Errorf("the brokers were asked %d times, want twice", asked)
	}
	if _, err := l.Balances.Waiter.Await(t.Context(), "acme", balances.Awaited{All: true}); !errors.Is(err, balances.ErrNotBooked) {
		t.Errorf("waiting without brokers: %v", err)
	}
}

// Frequent reads of balances don't wait for brokers: they get the last
// known end while a new one is read.
func TestABalanceDoesNotWaitForTheBrokers(t *testing.T) {
	l := ledgertest.Acme(t)
	first, asked := make(chan bool, 1), make(chan struct{})
	first <- true
	l.Balances.Waiter.End = func(ctx context.Context) (snapshot.End, error) {
		select {
		case <-first:
			return snapshot.End{Next: contract.Positions{0: 7}}, nil
		default:
		}
		close(asked)
		<-ctx.Done()
		return snapshot.End{}, ctx.Err()
	}
	l.SetPosition(t, 0, 7, [16]byte{1}, "")
	for _, pass := range []time.Duration{0, 1500 * time.Millisecond} {
		l.Pass(pass)
		if b := l.BalanceNow(t, "acme").Booking; b == nil || !b.Known || b.Behind != 0 {
			t.Errorf("after %s: booking %+v", pass, b)
		}
	}
	<-asked
}

// All pages together have each transfer once, in order.
func TestPagesOfTransfers(t *testing.T) {
	l := ledgertest.ThreeDays(t)
	var sum int64
	pages := 0
	for q := (postgres.TransferQuery{From: ledgertest.November, To: ledgertest.November.AddDate(1, 0, 0), Limit: 2}); ; pages++ {
		page, err := l.Balances.Transfers(t.Context(), "acme", q)
		testenv.Must(t, err)
		if len(page.Transfers) == 0 {
			break
		}
		for _, transfer := range page.Transfers {
			if transfer.Reason == ledger.Charged {
				sum += transfer.Amount
			}
		}
		q.After = page.Transfers[len(page.Transfers)-1].Cursor()
	}
	if pages != 5 || sum != 18 {
		t.Errorf("%d pages, sum %d", pages, sum)
	}
}

// A search for something rare reads a bounded number of transfers,
// returns where it stopped, and finds the rest from there.
func TestSearchesOfTransfersAreBounded(t *testing.T) {
	l := ledgertest.ThreeDays(t)
	q := postgres.TransferQuery{To: ledgertest.November.AddDate(1, 0, 0), Limit: 100, Reason: ledger.Issued}
	all, err := l.Balances.Transfers(t.Context(), "acme", q)
	if err != nil || all.Next != nil || len(all.Transfers) == 0 {
		t.Fatal(all, err)
	}
	found, steps := 0, 0
	q.Limit, q.ScanLimit = 2, 3
	for more := true; more; steps++ {
		page, err := l.Balances.Transfers(t.Context(), "acme", q)
		testenv.Must(t, err)
		found += len(page.Transfers)
		if more = page.Next != nil; more {
			q.After = *page.Next
		}
	}
	if found != len(all.Transfers) || steps < 3 {
		t.Errorf("%d of %d found in %d steps", found, len(all.Transfers), steps)
	}
}

// A statement's transfers agree with its balance.
func TestOverview(t *testing.T) {
	l := ledgertest.ThreeDays(t)
	found, err := l.Balances.Overview(t.Context(), "acme", postgres.TransferQuery{To: ledgertest.November.AddDate(1, 0, 0), Limit: 100})
	testenv.Must(t, err)
	var charged int64
	for _, transfer := range found.Transfers {
		if transfer.Reason == ledger.Charged {
			charged += transfer.Amount
		}
	}
	if used := found.Balance.Book.Used(); charged != 18 || used != charged {
		t.Errorf("the transfers charge %d, the balance %d", charged, used)
	}
}

// Pages across periods make up the whole list, even where a search
// stops within a period.
func TestPagesOverPeriods(t *testing.T) {
	l := threeMonths(t)
	for _, reason := range []ledger.Reason{0, ledger.Charged, ledger.Issued} {
		q := postgres.TransferQuery{To: l.Now().AddDate(1, 0, 0), Limit: 1000, Reason: reason}
		all := pagesOf(t, l, q)
		q.Limit, q.ScanLimit = 2, 3
		if pages := pagesOf(t, l, q); len(all) < 3 || !slices.Equal(pages, all) {
			t.Errorf("reason %q: pages have %v, the list %v", reason, pages, all)
		}
	}
}

// What was left of a grant at an instant ignores later bookings, of
// this period and later ones.
func TestPoolAtOverPeriods(t *testing.T) {
	l := threeMonths(t)
	for months, left := range []int64{0, 950, 900, 850} { // granted in the first; each used 50 more than the plan
		at := ledgertest.November.AddDate(0, months, 0)
		if balance, err := l.Balances.Balance(t.Context(), "acme", at.Add(-1)); err != nil || balance.Organization.Pool != left {
			t.Errorf("at %v %d bytes were left, want %d; %v", at, balance.Organization.Pool, left, err)
		}
	}
}

// threeMonths is a ledger where acme had a grant and used more than its
// plan in each of three months.
func threeMonths(t *testing.T) *ledgertest.Ledger {
	t.Helper()
	l := ledgertest.Acme(t)
	l.GrantAcme(t, ledgertest.GrantOf(1000))
	for range 3 {
		l.Book(t, l.NewCharge("acme", 100), l.NewCharge("acme", 50))
		l.SetClock(l.Now().AddDate(0, 1, 0))
		l.AdvanceAll(t)
	}
	return l
}

// pagesOf returns the cursors of the transfers on all pages.
func pagesOf(t *testing.T, l *ledgertest.Ledger, q postgres.TransferQuery) (all []postgres.TransferCursor) {
	t.Helper()
	for {
		page, err := l.Balances.Transfers(t.Context(), "acme", q)
		testenv.Must(t, err)
		for _, transfer := range page.Transfers {
			all = append(all, transfer.Cursor())
		}
		switch {
		case page.Next != nil:
			q.After = *page.Next
		case len(page.Transfers) == q.Limit:
			q.After = page.Transfers[len(page.Transfers)-1].Cursor()
		default:
			return all
		}
	}
}

// batchAt returns the id of a batch accepted at an instant.
func batchAt(at time.Time) uuid.UUID {
	batch := uuid.Must(uuid.NewV7())
	var millis [8]byte
	binary.BigEndian.PutUint64(millis[:], uint64(at.UnixMilli())) //nolint:gosec // since 1970
	copy(batch[:6], millis[2:])
	return batch
}

// A batch is reported once it is charged, even while another partition lags.
func TestABatchWaitsForNoOtherPartition(t *testing.T) {
	l, asked := ledgertest.Acme(t), make(chan struct{})
	batch := batchAt(l.Now())
	l.Balances.Waiter.End = func(context.Context) (snapshot.End, error) {
		close(asked)
		return snapshot.End{Next: contract.Positions{0: 1, 3: 1000}}, nil
	}
	l.SetPosition(t, 0, 0, [16]byte{1}, "")
	l.SetPosition(t, 3, 0, [16]byte{1}, "")
	go func() {
		<-asked // it is not charged yet, and waits
		charge := l.NewCharge("acme", 1)
		charge.Cause.Event = batch.String() + "/1"
		l.Book(t, charge)
		l.SetPosition(t, 0, 1, [16]byte{1}, "")
		l.Pass(time.Second)
	}()
	charged, err := l.Balances.Waiter.Await(t.Context(), "acme", balances.Awaited{Batch: batch})
	if err != nil || !*charged {
		t.Errorf("charged %v: %v", charged, err)
	}
}
