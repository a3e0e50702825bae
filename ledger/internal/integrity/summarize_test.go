package integrity_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// soundLog is as the ledger has it.
type soundLog struct{}

func (soundLog) Check(context.Context, []ledger.Range) ([]ledger.Violation, error) { return nil, nil }

// What is to be checked is found by its booking, on each of its
// days, and not by reading these whole.
func TestChecksFindTransfersByBooking(t *testing.T) {
	l := ledgertest.New(t)
	l.Start(t, "acme", ledger.Scale)
	l.As(t, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner) VALUES ($1, $2, 0, 0, 1, '')`,
			contract.GroupLedger, contract.TopicLogs)
		return err
	})
	const days, perDay = 2, 3000 // more than the index has of an empty day
	for day := range int64(days) {
		charges := make([]ledger.Charge, perDay)
		for i := range charges {
			charges[i] = logged("acme", 0, day*perDay+int64(i), l.Now())
		}
		l.Apply(t, charges...)
		l.Pass(24 * time.Hour)
	}
	checker := integrity.NewChecker(integrity.CheckerConfig{
		Pool: l.Pool, Log: soundLog{}, Interval: time.Hour, Clock: l.Now, Logger: testenv.Logger(t), Metrics: prometheus.NewRegistry(),
	})
	testenv.Run(t, checker.Run)
	testenv.Eventually(t, 30*time.Second, func() error {
		if checker.Report().Rounds == 0 {
			return errors.New("no round has ended")
		}
		return nil
	})
	if report := checker.Report(); report.Ranges != days || len(report.Violations) > 0 {
		t.Errorf("the checks end with %+v", report)
	}
	l.AsOwner(t, func(ctx context.Context, tx pgx.Tx) error {
		var left, indexes int
		err := tx.QueryRow(ctx, `SELECT coalesce(sum(brin_summarize_new_values(i.indexrelid)), 0), count(*) FROM pg_inherits JOIN pg_index i ON indrelid = inhrelid
			JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam
			WHERE inhparent = 'transfers'::regclass AND amname = 'brin' AND pg_relation_size(indrelid) > 32 * 8192
				AND indrelid::regclass::text >= 'transfers_20261120'`).Scan(&left, &indexes)
		if err == nil && (left != 0 || indexes < days) {
			t.Errorf("of %d days %d stretches are read whole", indexes, left)
		}
		return err
	})
}
