package postgres_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// november is when the tests take place, unless they say otherwise.
var november = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// A desk is a store in a fresh database and a clock that the test sets.
type desk struct {
	*postgres.Store
	pool   *pgxpool.Pool
	now    atomic.Pointer[time.Time]
	offset atomic.Int64
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	d := &desk{pool: pool}
	d.now.Store(&november)
	d.Store = &postgres.Store{Tiers: smallTiers(), Clock: func() time.Time { return *d.now.Load() }}
	return d
}

func smallTiers() ledger.Tiers {
	return ledger.Tiers{ledger.Indie: {Quota: 100, RequestsPerMinute: 60}, ledger.Scale: {Quota: 1 << 40, RequestsPerMinute: 1800}}
}

// as runs fn in a transaction that sees all organizations.
func (d *desk) as(t testing.TB, fn func(ctx context.Context, tx pgx.Tx) error) {
	t.Helper()
	if err := d.try(t.Context(), fn); err != nil {
		t.Fatal(err)
	}
}

func (d *desk) try(ctx context.Context, fn func(ctx context.Context, tx pgx.Tx) error) error {
	return pg.InTx(ctx, d.pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(ctx, tx); err != nil {
			return err
		}
		return fn(ctx, tx)
	})
}

func (d *desk) read(t testing.TB, organization string, fn func(ctx context.Context, tx pgx.Tx) error) {
	t.Helper()
	err := pg.ReadAs(t.Context(), d.pool, pg.Organization(organization), func(tx pgx.Tx) error { return fn(t.Context(), tx) })
	if err != nil {
		t.Fatal(err)
	}
}

func (d *desk) startPlan(t testing.TB, organization string, tier ledger.Tier) {
	t.Helper()
	from := november.AddDate(0, -2, 0)
	cause := ledger.Cause{Event: "created", Source: ledger.FromTenants, Offset: d.offset.Add(1), At: from}
	d.as(t, func(ctx context.Context, tx pgx.Tx) error {
		return d.StartPlan(ctx, tx, *d.now.Load(), organization, ledger.Plan{From: from, Tier: tier}, cause)
	})
}

// charge makes a charge that was accepted now.
func (d *desk) charge(organization string, bytes int64) ledger.Charge {
	offset := d.offset.Add(1)
	return ledger.Charge{Organization: organization, Bytes: bytes, Entries: 1, Cause: ledger.Cause{
		Event: fmt.Sprintf("batch/%d", offset), Batch: "batch", Offset: offset, At: *d.now.Load(), Project: "project", Key: "key",
	}}
}

func (d *desk) book(t testing.TB, charges ...ledger.Charge) {
	t.Helper()
	d.as(t, func(ctx context.Context, tx pgx.Tx) error { return d.Charge(ctx, tx, *d.now.Load(), charges) })
}

func (d *desk) balance(t testing.TB, organization string) (balance postgres.Balance) {
	t.Helper()
	d.read(t, organization, func(ctx context.Context, tx pgx.Tx) (err error) {
		balance, err = d.Balance(ctx, tx, pg.Organization(organization))
		return err
	})
	return balance
}

// checkSound fails the test where an invariant does not hold.
func (d *desk) checkSound(t testing.TB) {
	t.Helper()
	d.as(t, func(ctx context.Context, tx pgx.Tx) error {
		violations, err := postgres.Verify(ctx, tx)
		for _, v := range violations {
			t.Errorf("%s: %s", v.Invariant, v.Detail)
		}
		return err
	})
}
