package integrity_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	"github.com/weirlog/weir/ledger/internal/ledgertest"
	"github.com/weirlog/weir/ledger/internal/watermark"
)

// The charges of an hour are found by their booking, without reading
// the whole day, even after an outage of days.
func TestChargesOfAnHourAreFoundByBooking(t *testing.T) {
	for name, pauses := range map[string]int{"each day": 1, "after an outage": 3} {
		t.Run(name, func(t *testing.T) {
			l := ledgertest.New(t)
			l.Start(t, "acme", ledger.Scale)
			sealer := &integrity.Sealer{
				Pool: l.Pool, Sealed: integrity.NewSealed(prometheus.NewRegistry()), Checkpoint: integrity.NewCheckpoint(prometheus.NewRegistry()),
				Time: func(context.Context, pgx.Tx) (time.Time, error) { return l.Now(), nil },
				End:  func(context.Context) (watermark.End, error) { return watermark.End{}, nil },
			}
			const days, perDay = 3, 3000 // more than the index has of an empty day
			for day := range days {
				charges := make([]ledger.Charge, perDay)
				for i := range charges {
					charges[i] = logged("acme", 0, int64(day*perDay+i), l.Now())
				}
				l.Apply(t, charges...)
				l.Pass(24 * time.Hour)
				if (day+1)%pauses > 0 {
					continue
				}
				if err := sealer.RunOnce(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			wantSummarized(t, l, days)
		})
	}
}

// wantSummarized counts the unindexed stretches of some days.
func wantSummarized(t *testing.T, l *ledgertest.Ledger, days int) {
	t.Helper()
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
