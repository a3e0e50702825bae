package bus_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
)

// BenchmarkApply measures the apply step alone: inbox, postings, balances, usage and range of one
// batch in one transaction, by how many connections and organizations. The events are LogsAccepted,
// of which each may be 1,000 log entries.
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
