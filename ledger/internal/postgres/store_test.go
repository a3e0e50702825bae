package postgres_test

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
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// Charges lower what remains to the byte; what exceeds the grant is overage, and the books stay sound.
func TestCharge(t *testing.T) {
	d := newDesk(t)
	d.subscribe(t, "acme", ledger.Indie)
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
	d.subscribe(t, "acme", ledger.Indie)
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
	d.subscribe(t, "acme", ledger.Indie)
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
func TestSubscribeTwice(t *testing.T) {
	d := newDesk(t)
	d.subscribe(t, "acme", ledger.Indie)
	d.book(t, d.charge("acme", 10))
	d.subscribe(t, "acme", ledger.Scale)
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
		d.subscribe(t, fmt.Sprint("org", i), ledger.Indie)
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
	if facts := d.facts(t); len(facts) != organizations*4 {
		t.Errorf("%d facts, want 3 thresholds and 1 exhaustion for each of %d", len(facts), organizations)
	}
}

func randomCharges(d *desk, random *rand.Rand, organizations int) []ledger.Charge {
	charges := make([]ledger.Charge, 1+random.IntN(20))
	for i := range charges {
		charges[i] = d.charge(fmt.Sprint("org", random.IntN(organizations)), random.Int64N(10))
	}
	return charges
}

// facts reads the outbox once no transaction of the server is open that was there before them.
func (d *desk) facts(t testing.TB) (facts []bus.Outgoing) {
	t.Helper()
	testenv.Eventually(t, time.Minute, func() (err error) {
		var held int
		d.as(t, func(ctx context.Context, tx pgx.Tx) error {
			return tx.QueryRow(ctx, `SELECT count(*) FROM facts WHERE transaction >= pg_snapshot_xmin(pg_current_snapshot())`).Scan(&held)
		})
		if held > 0 {
			err = fmt.Errorf("%d facts are held back", held)
		}
		return err
	})
	d.as(t, func(ctx context.Context, tx pgx.Tx) (err error) {
		facts, err = outbox.Outbox{}.Read(ctx, tx, bus.Cursor{}, 1000)
		return err
	})
	return facts
}

func (d *desk) round(t testing.TB) (round postgres.Round) {
	t.Helper()
	d.as(t, func(ctx context.Context, tx pgx.Tx) (err error) {
		round, err = d.NextRound(ctx, tx)
		return err
	})
	return round
}

func (d *desk) markPublished(t testing.TB, round postgres.Round) {
	t.Helper()
	d.as(t, func(ctx context.Context, tx pgx.Tx) error { return d.MarkPublished(ctx, tx, round) })
}

// What changes after a round was read stays due when that round is noted as published; versions only grow.
func TestRoundsMissNothing(t *testing.T) {
	d := newDesk(t)
	d.subscribe(t, "acme", ledger.Indie)
	first := d.round(t)
	d.book(t, d.charge("acme", 10))
	d.markPublished(t, first)
	second := d.round(t)
	if len(second.Accounts) != 1 || second.Accounts[0].Used != 10 || second.Accounts[0].Version <= first.Accounts[0].Version {
		t.Errorf("after %+v came %+v", first, second)
	}
	d.markPublished(t, second)
	if third := d.round(t); len(third.Accounts) != 0 {
		t.Errorf("nothing happened, but due is %+v", third)
	}
}

// Readers ignore a version below one that they have. A schema that was dropped and filled again from the log is above the
// one before: its versions start at the time, and no ledger publishes a million states a second.
func TestVersionsOutliveTheSchema(t *testing.T) {
	before := time.Now().UnixMicro()
	d := newDesk(t)
	d.subscribe(t, "acme", ledger.Indie)
	if version := d.round(t).Accounts[0].Version; version < before || version > time.Now().Add(time.Minute).UnixMicro() {
		t.Errorf("version %d, want one of the time %d", version, before)
	}
}

// Other terms of a tier make every account due once, with the new requests per minute and next quota.
func TestNewTermsRepublish(t *testing.T) {
	d := newDesk(t)
	d.subscribe(t, "acme", ledger.Indie)
	republish := func() []int64 {
		d.as(t, d.RepublishOnNewTerms)
		round := d.round(t)
		d.markPublished(t, round)
		var next []int64
		for _, account := range round.Accounts {
			next = append(next, account.NextQuota)
		}
		return next
	}
	republish()
	if due := republish(); len(due) != 0 {
		t.Errorf("the same terms made accounts due: %v", due)
	}
	d.Tiers[ledger.Indie] = ledger.Terms{Quota: 500, RequestsPerMinute: 7}
	if due := republish(); len(due) != 1 || due[0] != 500 {
		t.Errorf("next quotas %v, want 500", due)
	}
}

// The balance at an instant is that of its period by what was booked until then.
func TestBalanceAt(t *testing.T) {
	d := newDesk(t)
	d.subscribe(t, "acme", ledger.Indie)
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
	d.subscribe(t, "acme", ledger.Scale)
	for range 3 {
		d.book(t, d.charge("acme", 1), d.charge("acme", 2), d.charge("acme", 3))
		tomorrow := d.now.Load().AddDate(0, 0, 1)
		d.now.Store(&tomorrow)
	}
	d.read(t, "acme", func(ctx context.Context, tx pgx.Tx) error {
		var after postgres.EntryCursor
		var sum int64
		for pages := 0; ; pages++ {
			page, err := d.Entries(ctx, tx, "acme", november, november.AddDate(1, 0, 0), after, 2)
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

// A transaction that acts for one organization sees and writes nothing of another, whatever it asks for.
func TestIsolation(t *testing.T) {
	d := newDesk(t)
	for _, organization := range []string{"acme", "evil"} {
		d.subscribe(t, organization, ledger.Indie)
		d.book(t, d.charge(organization, 60))
	}
	for _, table := range []string{"organizations", "books", "transfers", "usage", "facts", "unpublished"} {
		d.read(t, "evil", func(ctx context.Context, tx pgx.Tx) error {
			var foreign, own int
			err := tx.QueryRow(ctx, `SELECT count(*) FILTER (WHERE organization <> 'evil'), count(*) FROM `+table).Scan(&foreign, &own)
			if foreign != 0 || own == 0 {
				t.Errorf("%s shows %d rows of others among %d", table, foreign, own)
			}
			return err
		})
	}
	d.read(t, "evil", func(ctx context.Context, tx pgx.Tx) error {
		if _, err := d.Balance(ctx, tx, "acme"); !errors.Is(err, postgres.ErrNoOrganization) {
			t.Errorf("error %v, want ErrNoOrganization", err)
		}
		return nil
	})
	err := pg.InTx(t.Context(), d.pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(t.Context(), tx, "evil"); err != nil {
			return err
		}
		_, err := tx.Exec(t.Context(), `UPDATE books SET organization = 'acme'`)
		return err
	})
	if err == nil {
		t.Error("a row was moved to another organization")
	}
}

// Every table that knows organizations has row level security forced, and the organization first in its primary key.
func TestEveryTableIsIsolated(t *testing.T) {
	d := newDesk(t)
	rows, err := d.pool.Query(t.Context(), `SELECT c.relname, c.relrowsecurity AND c.relforcerowsecurity,
			coalesce((SELECT a.attnum = i.indkey[0] FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary), false)
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization'
		WHERE c.relnamespace = 'ledger'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition`)
	if err != nil {
		t.Fatal(err)
	}
	var table string
	var forced, leads bool
	tables := 0
	_, err = pgx.ForEachRow(rows, []any{&table, &forced, &leads}, func() error {
		tables++
		if !forced || !leads {
			t.Errorf("%s: row level security forced %v, organization leads the primary key %v", table, forced, leads)
		}
		return nil
	})
	if err != nil || tables < 6 {
		t.Errorf("%d tables, error %v", tables, err)
	}
}

// Verify finds what was tampered with.
func TestVerifyFinds(t *testing.T) {
	tests := map[string]string{
		postgres.BalanceIsEntries: `UPDATE books SET grant_left = grant_left + 1, consumed = consumed - 1 WHERE consumed > 0`,
		postgres.UsageIsCharges:   `UPDATE usage SET bytes = bytes + 1`,
	}
	for invariant, tamper := range tests {
		t.Run(invariant, func(t *testing.T) {
			d := newDesk(t)
			d.subscribe(t, "acme", ledger.Indie)
			d.book(t, d.charge("acme", 30))
			d.as(t, func(ctx context.Context, tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, tamper); err != nil {
					return err
				}
				violations, err := postgres.Verify(ctx, tx)
				if len(violations) != 1 || violations[0].Invariant != invariant {
					t.Errorf("violations %v", violations)
				}
				return err
			})
		})
	}
}

// Books that do not sum to zero can't even be written.
func TestDatabaseRefusesUnsoundBooks(t *testing.T) {
	d := newDesk(t)
	d.subscribe(t, "acme", ledger.Indie)
	d.book(t, d.charge("acme", 30))
	for _, tamper := range []string{
		`UPDATE books SET consumed = consumed + 1`,
		`UPDATE books SET grant_left = -1, consumed = consumed + grant_left + 1`,
		`INSERT INTO transfers SELECT organization, effective_at, source, partition, "offset", 99, period_start, 1, 1, 5, 0, 2, '', '', '', now() FROM transfers`,
	} {
		err := d.try(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			_, err := tx.Exec(ctx, tamper)
			return err
		})
		if !pg.IsData(err) {
			t.Errorf("%s: error %v", tamper, err)
		}
	}
}
