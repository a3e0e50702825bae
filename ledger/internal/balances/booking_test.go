package balances_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/watermark"
	"github.com/weirlog/weir/shared/contract"
)

// A balance has its lag behind the log. Without brokers it comes
// without, and they are not queried each time.
func TestBooking(t *testing.T) {
	l, asked := ledgertest.Acme(t), 0
	var failure error
	l.Balances.Waiter.End = func(context.Context) (watermark.End, error) {
		asked++
		return watermark.End{Next: contract.Positions{0: 12, 1: 5}}, failure
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
	l.Balances.Waiter.End = func(ctx context.Context) (watermark.End, error) {
		select {
		case <-first:
			return watermark.End{Next: contract.Positions{0: 7}}, nil
		default:
		}
		close(asked)
		<-ctx.Done()
		return watermark.End{}, ctx.Err()
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
