package service

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// logThatIsAway can't be read.
type logThatIsAway struct{}

func (logThatIsAway) Check(context.Context, []ledger.Range) ([]ledger.Violation, error) {
	return nil, errors.New("no broker answers")
}

// What the database shows to be wrong is noted, and when, although the log can't be read: the next
// round looks elsewhere.
func TestCheckerNotesWithoutTheLog(t *testing.T) {
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	checker := NewChecker(CheckerConfig{
		Pool: pool, Log: logThatIsAway{}, Clock: func() time.Time { return now }, Logger: testenv.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	if err := checker.runOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := pool.Exec(t.Context(), `WITH applied AS (INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ($2, $3, 0, 1, 1, ''))
		INSERT INTO ranges (partition, first_offset, next_offset, records, charged, bytes, charged_bytes, effective_from, effective_to, booked_at)
		VALUES (0, 0, 1, 1, 1, 10, 10, $1, $1, $1)`, now, contract.GroupLedger, contract.TopicLogs)
	if err != nil {
		t.Fatal(err)
	}
	if err := checker.runOnce(t.Context()); err == nil {
		t.Error("the log was read from nowhere")
	}
	report := checker.Report()
	if len(report.Violations) != 1 || report.Violations[0].Invariant != ledger.RangeIsTransfers || !report.At.Equal(now) {
		t.Errorf("report %+v", report)
	}
}
