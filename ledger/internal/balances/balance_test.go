package balances_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
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
		if err != nil {
			t.Fatal(err)
		}
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
	testenv.Eventually(t, 30*time.Second, func() error {
		var waiting bool
		err := l.Pool.QueryRow(t.Context(), `SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR SHARE'
			AND datname = current_database()`).Scan(&waiting)
		if err == nil && !waiting && len(asked) == 0 {
			err = errors.New("nobody waits")
		}
		return err
	})
	close(end)
	if err := <-booked; err != nil {
		t.Fatal(err)
	}
	first := <-asked
	again, err := l.Balances.Balance(t.Context(), "acme", at)
	if err != nil || again.Book.Used() != first {
		t.Errorf("used at %s is first %d, then %d (%v)", at, first, again.Book.Used(), err)
	}
}
