package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Charges lower what remains to the byte; what exceeds the grant is overage, and the books stay sound.
func TestCharge(t *testing.T) {
	d := newDesk(t)
	d.startPlan(t, "acme", ledger.Indie)
	d.book(t, d.charge("acme", 30), d.charge("acme", 45))
	if b := d.balance(t, "acme").Book; b.Granted() != 100 || b.Used() != 75 || b.Remaining() != 25 {
		t.Errorf("balances %v", b.Balances)
	}
	d.book(t, d.charge("acme", 40))
	if b := d.balance(t, "acme").Book; b.Used() != 115 || b.Remaining() != 0 || b.Balances[ledger.Overage] != 15 {
		t.Errorf("balances %v", b.Balances)
	}
	d.checkSound(t)
}

// A charge that is rolled back leaves nothing behind.
func TestChargeRollsBack(t *testing.T) {
	d := newDesk(t)
	d.startPlan(t, "acme", ledger.Indie)
	stop := errors.New("stop")
	err := d.try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		return errors.Join(d.Charge(ctx, tx, november, []ledger.Charge{d.charge("acme", 30)}), stop)
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if b := d.balance(t, "acme").Book; b.Used() != 0 {
		t.Errorf("balances %v", b.Balances)
	}
	d.checkSound(t)
}

// Logs of an organization that nobody has announced are charged all the same; it stays unknown to readers until its plan
// arrives, and then its balance is exact, in every period that was touched.
func TestUnknownOrganization(t *testing.T) {
	d := newDesk(t)
	late := d.charge("acme", 7)
	late.Cause.At = november.AddDate(0, -1, 0)
	d.book(t, d.charge("acme", 60), late)
	d.read(t, "acme", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := d.Balance(ctx, tx, "acme"); !errors.Is(err, postgres.ErrNoOrganization) {
			t.Errorf("error %v, want ErrNoOrganization", err)
		}
		return nil
	})
	if due := d.round(t).Accounts; len(due) != 0 {
		t.Errorf("%v is published before its plan is known", due)
	}
	d.startPlan(t, "acme", ledger.Indie)
	if b := d.balance(t, "acme").Book; b.Granted() != 100 || b.Used() != 60 || b.Remaining() != 40 {
		t.Errorf("balances %v", b.Balances)
	}
	d.book(t, d.charge("acme", 1))
	if b := d.balance(t, "acme").Book; b.Remaining() != 39 {
		t.Errorf("balances %v", b.Balances)
	}
	if due := d.round(t).Accounts; len(due) != 1 || due[0].Used != 61 {
		t.Errorf("due %+v", due)
	}
	d.checkSound(t)
}

// The news of an organization may come twice, and out of order with its logs: it takes effect once.
func TestPlanStartsOnce(t *testing.T) {
	d := newDesk(t)
	d.startPlan(t, "acme", ledger.Indie)
	d.book(t, d.charge("acme", 10))
	d.startPlan(t, "acme", ledger.Scale)
	if b := d.balance(t, "acme"); b.Book.Granted() != 100 || b.Tier != ledger.Indie {
		t.Errorf("tier %q, balances %v", b.Tier, b.Book.Balances)
	}
	d.checkSound(t)
}

// Writers of the same organizations, in any order, wait for each other: no byte is lost, and each threshold is said once.
func TestConcurrentCharges(t *testing.T) {
	d := newDesk(t)
	const organizations, writers, batches = 5, 4, 25
	for i := range organizations {
		d.startPlan(t, fmt.Sprint("org", i), ledger.Indie)
	}
	var mu sync.Mutex
	want := map[string]int64{}
	var wait sync.WaitGroup
	for w := range writers {
		random := rand.New(rand.NewPCG(uint64(w), 1))
		wait.Go(func() {
			for range batches {
				charges := randomCharges(d, random, organizations)
				for err := errors.New("first"); err != nil; {
					err = d.try(t.Context(), func(ctx context.Context, tx pgx.Tx) error { return d.Charge(ctx, tx, november, charges) })
					if err != nil && !pg.IsTransient(err) {
						t.Error(err)
						return
					}
				}
				mu.Lock()
				for _, charge := range charges {
					want[charge.Organization] += charge.Bytes
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for organization, used := range want {
		if got := d.balance(t, organization).Book.Used(); got != used {
			t.Errorf("%s used %d, want %d", organization, got, used)
		}
	}
	d.checkSound(t)
	if events := d.events(t); len(events) != organizations*4 {
		t.Errorf("%d events, want 3 thresholds and 1 exhaustion for each of %d", len(events), organizations)
	}
}

func randomCharges(d *desk, random *rand.Rand, organizations int) []ledger.Charge {
	charges := make([]ledger.Charge, 1+random.IntN(20))
	for i := range charges {
		charges[i] = d.charge(fmt.Sprint("org", random.IntN(organizations)), random.Int64N(10))
	}
	return charges
}
