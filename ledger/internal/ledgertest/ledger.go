package ledgertest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/plans"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// November is when the tests take place by default.
var November = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// How many decide at once, and how many read.
const (
	Deciders = 3
	Readers  = 4
)

// decisionWait is how long a decision waits for its turn: until it
// comes, however busy the machine is.
const decisionWait = 2 * time.Minute

// A Ledger is a service on a fresh database, and a clock that the test sets.
type Ledger struct {
	*services.Services
	Clock
	Pool   *pgxpool.Pool
	offset atomic.Int64

	mu     sync.Mutex
	events []ledger.Event // that decisions made true
}

// A Clock is what a test sets. That of the database may be behind.
type Clock struct {
	now        atomic.Pointer[time.Time]
	ClockAhead time.Duration // of the database's
}

// Now is the clock.
func (c *Clock) Now() time.Time { return *c.now.Load() }

// SetClock sets the clock.
func (c *Clock) SetClock(now time.Time) { c.now.Store(&now) }

// Pass sets the clock forward, and returns the time that it is then.
func (c *Clock) Pass(span time.Duration) time.Time {
	c.SetClock(c.Now().Add(span))
	return c.Now()
}

// DatabaseNow is the clock of the database.
func (c *Clock) DatabaseNow() time.Time { return c.Now().Add(-c.ClockAhead) }

// note keeps what became true by decisions, for Events.
func (l *Ledger) note(_ context.Context, _ pgx.Tx, events []ledger.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, events...)
	return nil
}

func (l *Ledger) newID() string { return fmt.Sprint(l.offset.Add(1)) }

// Events are the kinds of what became true by decisions so far.
func (l *Ledger) Events() (kinds []ledger.EventKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, event := range l.events {
		kinds = append(kinds, event.Kind)
	}
	return kinds
}

// New makes a ledger in November. Tier indie has 100 bytes,
// scale as many as a test can use.
func New(t testing.TB) *Ledger {
	t.Helper()
	return On(t, pgtest.Open(t, postgres.Schema, postgres.Migrations()...))
}

// On is New on a database of the caller's.
func On(t testing.TB, pool *pgxpool.Pool) *Ledger {
	t.Helper()
	l := &Ledger{Pool: pool}
	l.SetClock(November)
	l.Services = services.New(services.Config{
		Reads: services.Reads{
			Pool:    l.Pool,
			Limiter: httpapi.NewLimiter(httpapi.LimiterConfig{Slots: Readers, Module: "weir_ledger", Noun: "reads"}, prometheus.NewRegistry()),
		},
		Decisions: services.Decisions{
			Pool: l.Pool, Limiter: httpapi.NewLimiter(unitofwork.Deciders(Deciders, decisionWait), prometheus.NewRegistry()),
			Save: l.note, IDs: l.newID, Time: func(context.Context, pgx.Tx) (time.Time, error) { return l.DatabaseNow(), nil },
		},
		Tiers: smallTiers(), Kept: ledger.DefaultRetention(), Clock: l.Now, Owns: func(string, string) bool { return true },
	})
	l.SetTiers(t, smallTiers())
	return l
}

func smallTiers() ledger.Tiers {
	return ledger.Tiers{ledger.Indie: {Quota: 100, RequestsPerMinute: 60}, ledger.Scale: {Quota: 1 << 40, RequestsPerMinute: 1800}}
}

// SetTiers records what tiers allow, as a starting process does.
func (l *Ledger) SetTiers(t testing.TB, tiers ledger.Tiers) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return postgres.RecordTerms(ctx, tx, ledger.Rules{Tiers: tiers, Thresholds: ledger.DefaultThresholds()}, ledger.DefaultRetention())
	})
}

// As runs fn in a transaction that sees all organizations.
func (l *Ledger) As(t testing.TB, fn func(ctx context.Context, tx pgx.Tx) error) {
	t.Helper()
	testenv.Must(t, l.Try(t.Context(), fn))
}

// AsOwner is As for the role that owns the schema: it spoils what serving can't.
func (l *Ledger) AsOwner(t testing.TB, fn func(ctx context.Context, tx pgx.Tx) error) {
	t.Helper()
	testenv.Must(t, try(t.Context(), pgtest.Owner(t, l.Pool), fn))
}

// Try is As for what may fail.
func (l *Ledger) Try(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return try(ctx, l.Pool, fn)
}

func try(ctx context.Context, pool *pgxpool.Pool, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return pg.InTxAsSystem(ctx, pool, func(tx pgx.Tx) error {
		return fn(ctx, tx)
	})
}

// Read runs fn in a transaction that sees one organization.
func (l *Ledger) Read(t testing.TB, organization string, fn func(ctx context.Context, tx pgx.Tx) error) {
	t.Helper()
	err := pg.ReadAs(t.Context(), l.Pool, pg.Organization(organization), func(tx pgx.Tx) error { return fn(t.Context(), tx) })
	testenv.Must(t, err)
}

// Start starts the plan of an organization that exists since two
// months before November.
func (l *Ledger) Start(t testing.TB, organization string, tier ledger.Tier) {
	t.Helper()
	from := November.AddDate(0, -2, 0)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := l.Plans.StartPlans(ctx, tx, from, []plans.Start{{Organization: organization, Plan: ledger.Plan{From: from, Tier: tier}}})
		return err
	})
}

// NewCharge makes a charge that was accepted now.
func (l *Ledger) NewCharge(organization string, bytes int64) ledger.Charge {
	offset := l.offset.Add(1)
	return ledger.Charge{Organization: organization, Bytes: bytes, Entries: 1, Cause: ledger.Cause{
		Event: fmt.Sprintf("batch/%d", offset), Batch: "batch", Offset: offset, At: l.Now(), Project: "project", Key: "key",
	}}
}

// Book books charges in one transaction.
func (l *Ledger) Book(t testing.TB, charges ...ledger.Charge) (events []ledger.Event) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) (err error) {
		events, err = l.Booking.Charge(ctx, tx, l.Now(), charges)
		return err
	})
	return events
}

// Apply books charges in one transaction that notes their
// ranges, as the consumer of the log does.
func (l *Ledger) Apply(t testing.TB, charges ...ledger.Charge) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		return Apply(ctx, tx, l.Services, l.Now(), charges)
	})
}

// Apply books charges of whole requests with their ranges.
func Apply(ctx context.Context, tx pgx.Tx, of *services.Services, at time.Time, charges []ledger.Charge) error {
	events, err := of.Booking.Charge(ctx, tx, at, charges)
	if err != nil {
		return err
	}
	ranges := ledger.RangesOf(charges, charges, at)
	ledger.ExtendToLate(ranges, events)
	return of.Booking.NoteApplied(ctx, tx, ranges)
}

// BalanceNow is an organization's balance.
func (l *Ledger) BalanceNow(t testing.TB, organization string) balances.Balance {
	t.Helper()
	balance, err := l.Balances.Balance(t.Context(), organization, time.Time{})
	testenv.Must(t, err)
	return balance
}

// CheckSound fails the test where an invariant does not hold.
func (l *Ledger) CheckSound(t testing.TB) {
	t.Helper()
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		violations, err := postgres.Verify(ctx, tx, l.Balances.Kept, l.Now())
		for _, v := range violations {
			t.Errorf("%s: %s", v.Invariant, v.Detail)
		}
		return err
	})
}
