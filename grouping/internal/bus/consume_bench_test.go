package bus_test

import (
	"math"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	sharedbus "github.com/weirlog/weir/shared/bus"
)

// BenchmarkConsume measures from records to committed groups,
// 100 records of 20 errors a transaction: a storm of few errors,
// all new errors, and the same without room for new groups.
func BenchmarkConsume(b *testing.B) {
	for _, load := range []struct {
		name             string
		kinds, newGroups int
	}{{"kinds=10", 10, math.MaxInt}, {"all-new", 0, math.MaxInt}, {"beyond-budget", 0, 1}} {
		b.Run(load.name, func(b *testing.B) {
			pool := open(b)
			const perRecord, perTransaction = 20, 100
			n := 0
			for b.Loop() {
				b.StopTimer()
				records := make([]sharedbus.Record, perTransaction)
				for i := range records {
					lines := make([]string, perRecord)
					for k := range lines {
						n++
						lines[k] = failure(n, load.kinds)
					}
					records[i] = record(logs(lines...), int64(i))
				}
				b.StartTimer()
				if err := consumeWithin(b.Context(), pool, load.newGroups, records...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "errors/s")
		})
	}
}

// failure is the nth error of so many kinds; 0: each is its own kind.
func failure(n, kinds int) string {
	if kinds > 0 {
		n %= kinds
	}
	return groupingtest.Failure(n)
}

// BenchmarkReplicas measures consumers side by side,
// each with its own records: 90 % of the errors are of
// one group, the others of 100,000, all of which exist.
func BenchmarkReplicas(b *testing.B) {
	pool := open(b)
	const kinds, perRecord, perTransaction = 100_000, 20, 100
	for from := 0; from < kinds; from += perRecord * perTransaction {
		if err := consume(b.Context(), pool, batch(perTransaction, perRecord, func(n int) string { return failure(from+n, kinds) })...); err != nil {
			b.Fatal(err)
		}
	}
	for _, replicas := range []int{1, 2} {
		b.Run(strconv.Itoa(replicas), func(b *testing.B) {
			var next atomic.Int64
			done := make(chan error, replicas)
			b.ResetTimer()
			for range replicas {
				go func() { done <- replica(b, pool, &next, kinds) }()
			}
			for range replicas {
				if err := <-done; err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*perRecord*perTransaction)/b.Elapsed().Seconds(), "errors/s")
		})
	}
}

// replica runs transactions until all replicas together ran b.N.
func replica(b *testing.B, pool *pgxpool.Pool, next *atomic.Int64, kinds int) error {
	for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
		mixed := func(i int) string { return groupingtest.HotAndRare(int(n)*2000+i, kinds) }
		if err := consume(b.Context(), pool, batch(100, 20, mixed)...); err != nil {
			return err
		}
	}
	return nil
}

// batch is so many records of so many entries.
func batch(records, entries int, entry func(n int) string) (all []sharedbus.Record) {
	for i := range records {
		lines := make([]string, entries)
		for k := range lines {
			lines[k] = entry(i*entries + k)
		}
		all = append(all, record(logs(lines...), int64(i)))
	}
	return all
}
