package grants_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A grant is used, survives a restart, and can be voided once.
func TestGrants(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Book(t, l.NewCharge("acme", 90))
	made := l.GrantAcme(t, ledgertest.GrantOf(50))
	l.Book(t, l.NewCharge("acme", 30), l.NewCharge("acme", 5))
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 150 || b.Used() != 125 || b.Remaining() != 25 {
		t.Errorf("book %+v", b)
	}
	l.CheckSound(t)
	for range 2 {
		voided, err := l.Grants.Void(t.Context(), "acme", unitofwork.Request{}, made.ID)
		if err != nil || voided.Status != ledger.GrantVoided || voided.Consumed != 25 || voided.Voided != 25 || voided.Remaining != 0 {
			t.Errorf("voided %+v, error %v", voided, err)
		}
	}
	if _, err := l.Grants.Void(t.Context(), "acme", unitofwork.Request{}, "grt_none"); !errors.Is(err, ledger.ErrNoGrant) {
		t.Errorf("error %v, want ErrNoGrant", err)
	}
	found, err := l.Grants.List(t.Context(), "acme", postgres.GrantCursor{}, 10)
	if err != nil || len(found) != 1 || found[0].ID != made.ID {
		t.Errorf("grants %+v, error %v", found, err)
	}
	l.CheckSound(t)
}

// What an organization had at an instant never changes, whatever
// happens to its grants.
func TestBalanceOfThenWithGrants(t *testing.T) {
	l := ledgertest.Acme(t)
	before := l.Now()
	l.Pass(time.Minute)
	made := l.GrantAcme(t, ledgertest.GrantOf(50))
	l.Book(t, l.NewCharge("acme", 120))
	between := l.Now()
	l.Pass(time.Minute)
	if _, err := l.Grants.Void(t.Context(), "acme", unitofwork.Request{}, made.ID); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		at                 time.Time
		granted, remaining int64
	}{{before, 100, 100}, {between, 150, 30}, {l.Now(), 150, 0}} {
		b, err := l.Balances.Balance(t.Context(), "acme", test.at)
		if err != nil || b.Book.Granted() != test.granted || b.Book.Remaining() != test.remaining {
			t.Errorf("at %s: %+v, error %v; want %d granted, %d left", test.at, b.Book, err, test.granted, test.remaining)
		}
	}
}

// An organization has no more grants than its limit.
func TestGrantsAreBounded(t *testing.T) {
	l := ledgertest.Acme(t)
	for range ledger.MaxGrants {
		l.GrantAcme(t, ledgertest.GrantOf(1))
	}
	var full ledger.LimitReached
	if _, err := l.Grants.Grant(t.Context(), "acme", unitofwork.Request{}, ledgertest.GrantOf(1)); !errors.As(err, &full) {
		t.Errorf("error %v, want LimitReached", err)
	}
}

// Concurrent grants and charges lose no grant and use nothing twice.
func TestConcurrentGrants(t *testing.T) {
	l := ledgertest.Acme(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := l.Grants.Grant(t.Context(), "acme", unitofwork.Request{}, ledgertest.GrantOf(10)); err != nil {
				t.Error(err)
			}
		})
		wait.Go(func() {
			err := l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
				_, err := l.Booking.Charge(ctx, tx, l.Now(), []ledger.Charge{l.NewCharge("acme", 20)})
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	b := l.BalanceNow(t, "acme").Book
	over := b.Balances[ledger.Overshoot] // of charges before enough grants
	if b.Granted() != 180 || b.Used() != 160-over || b.Remaining() != 20+over || b.Balances[ledger.Overage] != 0 {
		t.Errorf("book %+v", b)
	}
	l.CheckSound(t)
}
