package bus_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/integrity"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/pg"
)

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
