package booking_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// A batch asks the database as often for a thousand records as for one: for
// days, books and usage alike.
func TestABatchAsksOnce(t *testing.T) {
	counter := &statements{}
	l := ledgertest.On(counted(t, counter))
	l.Start(t, "acme", ledger.Scale)
	l.Book(t, l.NewCharge("acme", 1)) // which makes the day
	asked := map[int]int64{}
	for _, records := range []int{1, 1000} {
		charges := make([]ledger.Charge, records)
		for i := range charges {
			charges[i] = l.NewCharge("acme", 1)
		}
		before := counter.n.Load()
		l.Book(t, charges...)
		asked[records] = counter.n.Load() - before
	}
	if asked[1] == 0 || asked[1000] != asked[1] {
		t.Errorf("%d statements for one record, %d for a thousand", asked[1], asked[1000])
	}
}

// counted is a pool whose statements are counted.
func counted(t *testing.T, counter *statements) *pgxpool.Pool {
	t.Helper()
	config := pgtest.Open(t, postgres.Schema, postgres.Migrations()...).Config()
	config.ConnConfig.Tracer = counter
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// statements counts those that are sent, each of a batch too.
type statements struct{ n atomic.Int64 }

func (s *statements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	s.n.Add(1)
	return ctx
}

func (*statements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (*statements) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return ctx
}

func (s *statements) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) { s.n.Add(1) }

func (*statements) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}
