package app_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// BenchmarkEndToEnd measures from records in the broker to committed
// and published balances: a ledger starts behind the whole log.
func BenchmarkEndToEnd(b *testing.B) {
	const records, chunk = 100_000, 1000
	r := newRig(b)
	for i := range 100 {
		r.create(fmt.Sprint("org", i), "scale")
	}
	for first := 0; first < records; first += chunk {
		accepted := make([]contract.LogsAccepted, chunk)
		for i := range accepted {
			accepted[i] = logs(fmt.Sprint("org", (first+i)%100), 20000)
		}
		r.Accept(accepted...)
	}
	b.ResetTimer()
	for range b.N {
		r.start()
		r.awaitCounted()
	}
	b.ReportMetric(records/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkAccountLatency measures from the broker's acknowledgement of
// a LogsAccepted to its account state in weir.accounts.v1.
func BenchmarkAccountLatency(b *testing.B) {
	r := newRig(b)
	ledger, _ := r.start()
	r.create("acme", "scale")
	r.awaitAccount("acme")
	awaitReady(b, ledger)
	used := make(chan int64, 16)
	r.mu.Lock()
	r.seen = func(account contract.Account) { used <- account.Used }
	r.mu.Unlock()
	var took []time.Duration
	b.ResetTimer()
	for i := range int64(b.N) {
		r.Accept(logs("acme", 1))
		started := time.Now()
		for <-used < i+1 {
		}
		took = append(took, time.Since(started))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}
