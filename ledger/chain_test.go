package ledger_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/ledger"
)

// Ranges of interleaved charges join to that of all.
func TestRangesJoin(t *testing.T) {
	var shares [3][]ledger.Charge
	var all []ledger.Charge
	for i := range 60 {
		c := ledger.Charge{Bytes: int64(i), Checksum: uint64(i) << 60, Cause: ledger.Cause{
			Partition: i % 2, Offset: int64(i / 2), At: time.Unix(int64(i*7%11), 0),
		}}
		all, shares[i%3] = append(all, c), append(shares[i%3], c)
	}
	ranges := func(charges []ledger.Charge) []ledger.Range { return ledger.RangesOf(charges, charges, time.Time{}) }
	joined := ledger.JoinRanges(ledger.JoinRanges(ranges(shares[2]), ranges(shares[0])), ranges(shares[1]))
	slices.SortFunc(joined, func(a, b ledger.Range) int { return a.Partition - b.Partition })
	for i, want := range ranges(all) {
		got := joined[i]
		if *got.Checksum != *want.Checksum {
			t.Errorf("checksum %d, want %d", *got.Checksum, *want.Checksum)
		}
		if got.Checksum = want.Checksum; got != want {
			t.Errorf("joined %+v, want %+v", got, want)
		}
	}
}
