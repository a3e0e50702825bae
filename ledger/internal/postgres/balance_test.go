package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
)

// The balance at an instant is that of its period by what was booked until then.
func TestBalanceAt(t *testing.T) {
	d := newDesk(t)
	d.startPlan(t, "acme", ledger.Indie)
	at := func(when time.Time) (balance postgres.Balance) {
		d.read(t, "acme", func(ctx context.Context, tx pgx.Tx) (err error) {
			balance, err = d.BalanceAt(ctx, tx, "acme", when)
			return err
		})
		return balance
	}
	later, december := november.Add(time.Hour), november.AddDate(0, 1, 0)
	d.book(t, d.charge("acme", 30))
	d.now.Store(&later)
	d.book(t, d.charge("acme", 20))
	d.now.Store(&december)
	d.book(t, d.charge("acme", 5))
	tests := []struct {
		at   time.Time
		used int64
	}{
		{november.Add(-time.Second), 0}, {november, 30}, {later.Add(-time.Microsecond), 30}, {later, 50},
		{december.AddDate(0, 0, -1), 0}, {december, 5},
	}
	for _, test := range tests {
		if b := at(test.at); b.Book.Used() != test.used || b.Book.Granted() != 100 {
			t.Errorf("at %s used %d of %d, want %d", test.at, b.Book.Used(), b.Book.Granted(), test.used)
		}
	}
	d.checkSound(t)
}

// Pages of entries and of usage together are all of them, once each, in order.
func TestPages(t *testing.T) {
	d := newDesk(t)
	d.startPlan(t, "acme", ledger.Scale)
	for range 3 {
		d.book(t, d.charge("acme", 1), d.charge("acme", 2), d.charge("acme", 3))
		tomorrow := d.now.Load().AddDate(0, 0, 1)
		d.now.Store(&tomorrow)
	}
	d.read(t, "acme", func(ctx context.Context, tx pgx.Tx) error {
		var after postgres.TransferCursor
		var sum int64
		for pages := 0; ; pages++ {
			page, err := d.Transfers(ctx, tx, "acme", november, november.AddDate(1, 0, 0), after, 2)
			if err != nil || len(page) == 0 {
				if pages != 5 || sum != 18 {
					t.Errorf("%d pages, sum %d", pages, sum)
				}
				return err
			}
			for _, entry := range page {
				if entry.Reason == ledger.Charged {
					sum += entry.Amount
				}
			}
			after = page[len(page)-1].Cursor()
		}
	})
	d.read(t, "acme", func(ctx context.Context, tx pgx.Tx) error {
		first, err := d.Usage(ctx, tx, "acme", "", november.AddDate(0, 0, -1), november.AddDate(1, 0, 0), postgres.UsageCursor{}, 2)
		if err != nil || len(first) != 2 || first[0].Bytes != 6 || first[0].Entries != 3 {
			t.Errorf("usage %v, error %v", first, err)
			return err
		}
		rest, err := d.Usage(ctx, tx, "acme", "project", november.AddDate(0, 0, -1), november.AddDate(1, 0, 0), first[1].Cursor(), 2)
		if len(rest) != 1 {
			t.Errorf("usage %v, error %v", rest, err)
		}
		return err
	})
}
