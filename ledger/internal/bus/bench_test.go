package bus_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/integrity"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/pg"
)

// BenchmarkApply measures the apply step alone: inbox, postings,
// balances, usage and range of a batch in one transaction, by
// connections and organizations. Each LogsAccepted event may be 1,000
// log entries.
func BenchmarkApply(b *testing.B) {
	for _, shape := range []struct{ batch, organizations, writers int }{
		{1, 1000, 1}, {100, 1000, 1}, {1000, 1000, 1}, {5000, 1000, 1}, {5000, 1000, 2}, {5000, 1, 1}, {5000, 1, 2},
	} {
		b.Run(fmt.Sprintf("batch=%d/organizations=%d/connections=%d", shape.batch, shape.organizations, shape.writers), func(b *testing.B) {
			consumer, pool := newConsumer(b)
			batches := make([][]sharedbus.Record, b.N)
			for i := range batches {
				batches[i] = make([]sharedbus.Record, shape.batch)
				for j := range batches[i] {
					offset := int64(i*shape.batch + j)
					batches[i][j] = accepted(fmt.Sprint("org", offset%int64(shape.organizations)), i%shape.writers, offset)
				}
			}
			var next atomic.Int64
			var wait sync.WaitGroup
			b.ResetTimer()
			for writer := range shape.writers {
				wait.Go(func() {
					for i := writer; i < len(batches); i += shape.writers {
						err := pg.InTx(b.Context(), pool, func(tx pgx.Tx) error { return consumer.Logs(b.Context(), tx, batches[i]) })
						if err != nil {
							b.Error(err)
							return
						}
						next.Add(1)
					}
				})
			}
			wait.Wait()
			b.ReportMetric(float64(next.Load())*float64(shape.batch)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// BenchmarkCheck compares charges with their transfers and books. A
// check must be faster than what BenchmarkApply measures. Reading the
// log again is left out: that is done for a hundredth of it.
func BenchmarkCheck(b *testing.B) {
	const partitions, batches = 12, 240
	for _, batch := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("batch=%d/organizations=1000", batch), func(b *testing.B) {
			consumer, pool := newConsumer(b)
			for i := range batches {
				records := make([]sharedbus.Record, batch)
				for j := range records {
					offset := int64(i*batch + j)
					records[j] = accepted(fmt.Sprint("org", offset%1000), i%partitions, offset)
				}
				if err := pg.InTx(b.Context(), pool, func(tx pgx.Tx) error { return consumer.Logs(b.Context(), tx, records) }); err != nil {
					b.Fatal(err)
				}
			}
			b.ResetTimer()
			for range b.N {
				checkAll(b, pool, partitions)
			}
			b.ReportMetric(float64(b.N*batches*batch)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// checkAll checks all ranges of so many partitions.
func checkAll(b *testing.B, pool *pgxpool.Pool, partitions int) {
	b.Helper()
	_, err := pool.Exec(b.Context(), `WITH anew AS (DELETE FROM checked_ranges) INSERT INTO bus_positions (group_name, topic, partition, next, epoch, owner)
		SELECT $1, $2, p, 0, 1, '' FROM generate_series(0, $3 - 1) p ON CONFLICT DO NOTHING`, contract.GroupLedger, contract.TopicLogs, partitions)
	if err != nil {
		b.Fatal(err)
	}
	checker := integrity.NewChecker(integrity.CheckerConfig{
		Pool: pool, Log: soundLog{}, Interval: time.Hour, Clock: time.Now, Logger: slog.New(slog.DiscardHandler), Metrics: prometheus.NewRegistry(),
	})
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- checker.Run(ctx) }()
	for checker.Report().Rounds == 0 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil || len(checker.Report().Violations) > 0 {
		b.Fatal(err, checker.Report())
	}
}

type soundLog struct{}

func (soundLog) Check(context.Context, []ledger.Range) ([]ledger.Violation, error) { return nil, nil }

// BenchmarkSeal measures what a link costs for each charge, beside the
// cost of applying it.
func BenchmarkSeal(b *testing.B) {
	consumer, pool := newConsumer(b)
	const perBatch = 5000
	var applying time.Duration
	for i := range b.N {
		batch := make([]sharedbus.Record, perBatch)
		for j := range batch {
			offset := int64(i*perBatch + j)
			batch[j] = accepted(fmt.Sprint("org", offset%1000), 0, offset)
		}
		begun := time.Now()
		if err := pg.InTx(b.Context(), pool, func(tx pgx.Tx) error { return consumer.Logs(b.Context(), tx, batch) }); err != nil {
			b.Fatal(err)
		}
		applying += time.Since(begun)
	}
	b.ResetTimer()
	if err := integrity.Seal(b.Context(), pool, time.Now().Add(2*time.Hour)); err != nil {
		b.Fatal(err)
	}
	charges := float64(b.N * perBatch)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/charges, "ns/charge")
	b.ReportMetric(100*b.Elapsed().Seconds()/applying.Seconds(), "%-of-applying")
}
