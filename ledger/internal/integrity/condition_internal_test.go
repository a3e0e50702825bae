package integrity

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// bookings counts the queries of transfers, and those over more than one booking.
type bookings struct{ queries, spanning atomic.Int64 }

func (b *bookings) TraceQueryStart(ctx context.Context, _ *pgx.Conn, query pgx.TraceQueryStartData) context.Context {
	if strings.Contains(query.SQL, "booked_at BETWEEN $1 AND $2") {
		b.queries.Add(1)
		if from, to := query.Args[0].(time.Time), query.Args[1].(time.Time); !from.Equal(to) {
			b.spanning.Add(1)
		}
	}
	return ctx
}

func (*bookings) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A partition silent for months doesn't cause a sum over these months;
// each transaction is checked alone.
func TestExamineReadsOnlyTheLastBookings(t *testing.T) {
	config := pgtest.Open(t, postgres.Schema, postgres.Migrations()...).Config()
	traced := &bookings{}
	config.ConnConfig.Tracer = traced
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	_, err = pool.Exec(t.Context(), `WITH applied AS (INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner)
			SELECT $2, $3, p, 1, 1, '' FROM generate_series(0, 2) p)
		INSERT INTO ranges (partition, first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_from, booked_at)
		SELECT p, 0, 1, 1, 1, 10, 10, at, at, at, at FROM generate_series(0, 2) p, LATERAL (SELECT $1::timestamptz - (p / 2) * interval '3 months' AS at) at`,
		now, contract.GroupLedger, contract.TopicLogs)
	if err != nil {
		t.Fatal(err)
	}
	days := func(tx pgx.Tx) error { return postgres.EnsureDays(t.Context(), tx, now, now.AddDate(0, -3, 0)) }
	if err := pgx.BeginFunc(t.Context(), pool, days); err != nil {
		t.Fatal(err)
	}
	found, err := Examine(t.Context(), pool, &countedLog{}, now, now.AddDate(-1, 0, 0))
	if err != nil || len(found.Violations) != 3 || found.Violations[0].Invariant != ledger.RangeIsTransfers {
		t.Errorf("found %+v, %v, want that no range has transfers", found.Violations, err)
	}
	if queries, spanning := traced.queries.Load(), traced.spanning.Load(); queries != 4 || spanning != 0 {
		t.Errorf("%d questions, %d of them about more than one booking, want for each of two one about where they lie and one about all", queries, spanning)
	}
}
