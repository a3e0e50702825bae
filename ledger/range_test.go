package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
)

// Ranges of interleaved charges join to that of all.
func TestRangesJoin(t *testing.T) {
	var shares [3][]ledger.Range
	var all []ledger.Range
	for i := range 60 {
		c := ledger.Charge{Bytes: int64(i), Checksum: uint64(i) << 60, Cause: ledger.Cause{
			Partition: i % 2, Offset: int64(i / 2), At: time.Unix(int64(i*7%11), 0),
		}}
		all, shares[i%3] = noted(all, c), noted(shares[i%3], c)
	}
	joined := ledger.JoinRanges(ledger.JoinRanges(shares[2], shares[0]), shares[1])
	slices.SortFunc(joined, func(a, b ledger.Range) int { return a.Partition - b.Partition })
	for i, want := range all {
		got := joined[i]
		if *got.Checksum != *want.Checksum {
			t.Errorf("checksum %d, want %d", *got.Checksum, *want.Checksum)
		}
		if got.Checksum = want.Checksum; got != want {
			t.Errorf("joined %+v, want %+v", got, want)
		}
	}
}

// noted adds a charge to the range of its partition.
func noted(ranges []ledger.Range, c ledger.Charge) []ledger.Range {
	of := ledger.NewRange(c, time.Time{})
	of.Add(c)
	of.Charge(c)
	for i := range ranges {
		if ranges[i].Partition == c.Cause.Partition {
			ranges[i].Add(c)
			ranges[i].Charge(c)
			return ranges
		}
	}
	return append(ranges, of)
}
