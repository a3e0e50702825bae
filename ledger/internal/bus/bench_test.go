package bus_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/integrity"
	sharedbus "github.com/weirlog/weir/shared/bus"
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
		testenv.Must(b, pg.InTx(b.Context(), pool, func(tx pgx.Tx) error { return consumer.Logs(b.Context(), tx, batch) }))
		applying += time.Since(begun)
	}
	b.ResetTimer()
	testenv.Must(b, integrity.Seal(b.Context(), pool, time.Now().Add(2*time.Hour)))
	charges := float64(b.N * perBatch)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/charges, "ns/charge")
	b.ReportMetric(100*b.Elapsed().Seconds()/applying.Seconds(), "%-of-applying")
}
