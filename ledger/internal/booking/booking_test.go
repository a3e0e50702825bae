package booking_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// Charges lower what remains to the byte. Beyond the grant they are
// overshoot, of which nobody owes anything, and the books stay sound.
func TestCharge(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	l.Book(t, l.NewCharge("acme", 30), l.NewCharge("acme", 45))
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 100 || b.Used() != 75 || b.Remaining() != 25 {
		t.Errorf("balances %v", b.Balances)
	}
	l.Book(t, l.NewCharge("acme", 40))
	if b := l.BalanceNow(t, "acme").Book; b.Used() != 100 || b.Remaining() != 0 || b.Balances[ledger.Overshoot] != 15 {
		t.Errorf("balances %v", b.Balances)
	}
	l.CheckSound(t)
}

// What replicas of ingest have admitted beyond the quota eats no later
// grant, and the statement has it apart.
func TestOvershootEatsNoGrant(t *testing.T) {
	l := ledgertest.Acme(t)
	l.Book(t, l.NewCharge("acme", 90), l.NewCharge("acme", 90), l.NewCharge("acme", 1_499_920))
	l.GrantAcme(t, ledgertest.GrantOf(1_500_000))
	b := l.BalanceNow(t, "acme")
	if over := b.Book.Balances[ledger.Overshoot]; b.Book.Remaining() != 1_500_000 || b.Book.Used() != 100 || over != 1_500_000 || b.State() != ledger.Active {
		t.Errorf("%s, balances %v, %d remaining", b.State(), b.Book.Balances, b.Book.Remaining())
	}
	l.SetClock(b.Book.Period.End.Add(time.Minute))
	l.AdvanceAll(t)
	s, err := l.Statements.Statement(t.Context(), "acme", 3) // of September and October there are two
	testenv.Must(t, err)
	if s.Totals.Overshoot != 1_500_000 || s.Totals.Consumed != 100 || s.Totals.Overage != 0 || s.Check() != nil {
		t.Errorf("totals %+v, check: %v", s.Totals, s.Check())
	}
	l.CheckSound(t)
}

// A charge that is rolled back leaves nothing.
func TestChargeRollsBack(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	stop := errors.New("stop")
	err := l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
		_, err := l.Booking.Charge(ctx, tx, ledgertest.November, []ledger.Charge{l.NewCharge("acme", 30)})
		return errors.Join(err, stop)
	})
	if !errors.Is(err, stop) {
		t.Fatal(err)
	}
	if b := l.BalanceNow(t, "acme").Book; b.Used() != 0 {
		t.Errorf("balances %v", b.Balances)
	}
	l.CheckSound(t)
}

// Logs of an unknown organization are charged all the same. Readers
// can't see it until its plan arrives. Then its balance is exact in
// every period touched.
func TestUnknownOrganization(t *testing.T) {
	l := ledgertest.New(t)
	late := l.NewCharge("acme", 7)
	late.Cause.At = ledgertest.November.AddDate(0, -1, 0)
	l.Book(t, l.NewCharge("acme", 60), late)
	if _, err := l.Balances.Balance(t.Context(), "acme", time.Time{}); !errors.Is(err, ledger.ErrNoOrganization) {
		t.Errorf("error %v, want ErrNoOrganization", err)
	}
	if due := l.Round(t).Accounts; len(due) != 0 {
		t.Errorf("%v is published before its plan is known", due)
	}
	l.Start(t, "acme", ledger.Indie)
	if b := l.BalanceNow(t, "acme").Book; b.Granted() != 100 || b.Used() != 60 || b.Remaining() != 40 {
		t.Errorf("balances %v", b.Balances)
	}
	l.Book(t, l.NewCharge("acme", 1))
	if b := l.BalanceNow(t, "acme").Book; b.Remaining() != 39 {
		t.Errorf("balances %v", b.Balances)
	}
	if due := l.Round(t).Accounts; len(due) != 1 || due[0].Book.Used() != 61 {
		t.Errorf("due %+v", due)
	}
	l.CheckSound(t)
}

// An organization's creation may come twice and after its logs: it applies once.
func TestPlanStartsOnce(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	l.Book(t, l.NewCharge("acme", 10))
	l.Start(t, "acme", ledger.Scale)
	if b := l.BalanceNow(t, "acme"); b.Book.Granted() != 100 || b.Plan.Tier != ledger.Indie {
		t.Errorf("tier %q, balances %v", b.Plan.Tier, b.Book.Balances)
	}
	l.CheckSound(t)
}

// Concurrent writers of the same organizations, in any order, wait for
// each other. No byte is lost, and each threshold is announced once.
func TestConcurrentCharges(t *testing.T) {
	l := ledgertest.New(t)
	const organizations, writers, batches = 5, 4, 25
	for i := range organizations {
		l.Start(t, fmt.Sprint("org", i), ledger.Indie)
	}
	var mu sync.Mutex
	want, events := map[string]int64{}, 0
	var wait sync.WaitGroup
	for w := range writers {
		random := rand.New(rand.NewPCG(uint64(w), 1))
		wait.Go(func() {
			for range batches {
				charges := randomCharges(l, random, organizations)
				became, err := bookRetrying(t, l, charges)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				events += len(became)
				for _, charge := range charges {
					want[charge.Organization] += charge.Bytes
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	for organization, used := range want {
		if b := l.BalanceNow(t, organization).Book; b.Used()+b.Balances[ledger.Overshoot] != used {
			t.Errorf("%s: balances %v, want %d accepted", organization, b.Balances, used)
		}
	}
	l.CheckSound(t)
	if events != organizations*4 {
		t.Errorf("%d events, want 3 thresholds and 1 exhaustion for each of %d", events, organizations)
	}
}

// bookRetrying books charges, with retries when the database asks for one.
func bookRetrying(t *testing.T, l *ledgertest.Ledger, charges []ledger.Charge) (events []ledger.Event, err error) {
	for again := true; again; again = pg.IsTransient(err) {
		err = l.Try(t.Context(), func(ctx context.Context, tx pgx.Tx) (err error) {
			events, err = l.Booking.Charge(ctx, tx, ledgertest.November, charges)
			return err
		})
	}
	return events, err
}

func randomCharges(l *ledgertest.Ledger, random *rand.Rand, organizations int) []ledger.Charge {
	charges := make([]ledger.Charge, 1+random.IntN(20))
	for i := range charges {
		charges[i] = l.NewCharge(fmt.Sprint("org", random.IntN(organizations)), random.Int64N(10))
	}
	return charges
}

// A ledger whose clock runs a month ahead opens no period. Only
// accepted logs open one, and brokers refuse records dated more than an
// hour ahead.
func TestAClockAheadOpensNoPeriod(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Indie)
	charge := l.NewCharge("acme", 30)
	l.SetClock(ledgertest.November.AddDate(0, 1, 0))
	l.Book(t, charge)
	l.BalanceNow(t, "acme")
	var periods, last string
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT string_agg(to_char(period_start, 'MM'), ' ' ORDER BY period_start), to_char(max(period_start), 'MM') FROM books`).Scan(&periods, &last)
	})
	if last != "11" {
		t.Errorf("there are books of the months %s", periods)
	}
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		round, err := l.Accounts.NextRound(ctx, tx)
		if err == nil && (len(round.Accounts) != 1 || round.Accounts[0].Book.Used() != 30) {
			t.Errorf("published is %+v, want November's 30 bytes", round.Accounts)
		}
		return err
	})
	l.CheckSound(t)
}

// A late charge uses a grant that the next, already open period uses
// too. The events of that period are published.
func TestLateUseOfAGrantIsAnnouncedOfTheNextPeriod(t *testing.T) {
	l := ledgertest.Acme(t)
	december := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	l.SetClock(december.Add(-time.Second))
	l.Book(t, l.NewCharge("acme", 100))
	l.GrantAcme(t, ledgertest.GrantOf(50))
	late := l.NewCharge("acme", 50)
	l.SetClock(december.Add(time.Second))
	l.Book(t, l.NewCharge("acme", 100))
	var exhausted []string
	for _, event := range l.Book(t, late) {
		if event.Kind == ledger.QuotaExhausted {
			exhausted = append(exhausted, event.Book.Period.Start.Format("01"))
		}
	}
	if fmt.Sprint(exhausted) != "[11 12]" {
		t.Errorf("exhausted are the periods %v", exhausted)
	}
	l.CheckSound(t)
}

// A batch takes as many statements for a thousand records as for one:
// for days, books and usage.
func TestABatchAsksOnce(t *testing.T) {
	pool, statements := pgtest.Counted(t, pgtest.Open(t, postgres.Schema, postgres.Migrations()...))
	l := ledgertest.On(t, pool)
	l.Start(t, "acme", ledger.Scale)
	book := func(records int) int64 {
		charges := make([]ledger.Charge, records)
		for i := range charges {
			charges[i] = l.NewCharge("acme", 1)
		}
		return statements.Of(func() { l.Book(t, charges...) })
	}
	book(1) // creates the day
	if one, thousand := book(1), book(1000); one == 0 || thousand != one {
		t.Errorf("%d statements for one record, %d for a thousand", one, thousand)
	}
}
