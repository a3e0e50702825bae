package app

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// What the database shows to be wrong is noted, and when, although the log can't be read: the next round looks elsewhere.
func TestCheckerNotesWithoutTheLog(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	ctx, broker := brokerThatIsAway(t)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	checker := &Checker{
		Pool: pool, Log: &bus.Log{Brokers: []string{broker}}, Clock: func() time.Time { return now }, Logger: testenv.Logger(t),
		metrics: newCheckMetrics(prometheus.NewRegistry()),
	}
	if err := checker.runOnce(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := pool.Exec(ctx, `WITH applied AS (INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ($2, $3, 0, 1, 1, ''))
		INSERT INTO ranges (partition, first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_at)
		VALUES (0, 0, 1, 1, 1, 10, 10, $1, $1, $1)`, now, contract.GroupLedger, contract.TopicLogs)
	if err != nil {
		t.Fatal(err)
	}
	if err := checker.runOnce(ctx); err == nil {
		t.Error("the log was read from nowhere")
	}
	report := checker.Report()
	if len(report.Violations) != 1 || report.Violations[0].Invariant != postgres.RangeIsTransfers || !report.At.Equal(now) {
		t.Errorf("report %+v", report)
	}
}

// brokerThatIsAway is an address where nobody answers, and a context that ends as soon as somebody asks there.
func brokerThatIsAway(t *testing.T) (context.Context, string) {
	t.Helper()
	var listening net.ListenConfig
	listener, err := listening.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		if conn, err := listener.Accept(); err == nil {
			_ = conn.Close()
		}
	}()
	return ctx, listener.Addr().String()
}
