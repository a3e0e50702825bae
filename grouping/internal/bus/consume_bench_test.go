package bus_test

import (
	"fmt"
	"math"
	"testing"

	sharedbus "github.com/weirlog/weir/shared/bus"
)

// BenchmarkConsume measures from records to committed groups, 100 records of 20 errors a
// transaction: a storm of few errors, errors that are all new, and the same where there is no room
// for new groups.
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

// failure is an entry with a trace of 12 lines; the nth is one of kinds, or of a kind of its own.
func failure(n, kinds int) string {
	if kinds > 0 {
		n %= kinds
	}
	line := `{"timestamp":"2026-11-20T12:00:00.123Z","level":"error","message":"request failed","metadata":{"request":"7f3a9c21","user":"alice"},` +
		`"error":{"type":"java.lang.IllegalStateException","message":"cannot pay","stack_trace":[`
	for i := range 12 {
		line += fmt.Sprintf(`"at com.acme.pay.Gateway%s.charge%c(Gateway.java:%d)",`, letters(n), 'a'+i, 100+i)
	}
	return line[:len(line)-1] + `]}}`
}

// letters writes n without digits, which would be a counter's.
func letters(n int) string {
	text := ""
	for ; n > 0; n /= 26 {
		text += string(rune('a' + n%26))
	}
	return text
}
