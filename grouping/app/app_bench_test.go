package app_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/shared/contract"
)

// BenchmarkEndToEnd measures from the broker to committed
// groups, with the events published: errors of one project, 90
// % of one group, the others of 100,000, all of which exist.
func BenchmarkEndToEnd(b *testing.B) {
	const kinds, perRecord, load, batchSize = 100_000, 100, 200_000, 20_000
	r := newRig(b)
	r.config.NewGroupsPerHour, r.config.NewGroupsPerOrganization = math.MaxInt32, math.MaxInt32
	_, stop := r.start()
	for from := 0; from < kinds; from += batchSize {
		r.send(batchSize, perRecord, func(i int) string { return groupingtest.Failure(from + i) })
	}
	stop()
	for _, replicas := range []int{1, 2} {
		b.Run(fmt.Sprint("replicas=", replicas), func(b *testing.B) {
			for range replicas {
				process, stop := r.start()
				awaitReady(b, process)
				defer stop()
			}
			n := 0
			for b.Loop() {
				r.send(load, perRecord, func(i int) string { return groupingtest.HotAndRare(n+i, kinds) })
				n += load
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "errors/s")
		})
	}
}

// send publishes errors of one project, and waits until they are applied.
func (r *rig) send(errors, perRecord int, nth func(n int) string) {
	r.t.Helper()
	hour := time.Now().Truncate(time.Hour)
	for from := 0; from < errors; from += 10 * perRecord {
		var accepted []contract.LogsAccepted
		for n := from; n < min(errors, from+10*perRecord); n += perRecord {
			entries := make([]string, perRecord)
			for i := range entries {
				entries[i] = nth(n + i)
			}
			request := logs("acme", "shop", perRecord, entries...)
			request.Time = hour
			accepted = append(accepted, request)
		}
		r.Accept(accepted...)
	}
	r.awaitApplied()
}
