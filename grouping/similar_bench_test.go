package grouping

import (
	"fmt"
	"testing"
)

// What it costs to order as many groups as a look reads, where no
// two calls are the same.
func BenchmarkHostileAlignment(b *testing.B) {
	groups := make([][]int32, 3000)
	for i := range groups {
		for range maxCalls {
			groups[i] = append(groups[i], numberOf(fmt.Append(nil, i, len(groups[i]))))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		q := RarityAmong(groups).Query(groups[0])
		for _, group := range groups {
			q.Alignment(group)
		}
	}
}
