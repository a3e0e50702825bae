package console

import (
	"math"
	"testing"

	"github.com/weirlog/weir/ledger"
)

// The bar is never longer than the whole, is full only at the end, and
// never overflows.
func TestThousandths(t *testing.T) {
	for _, c := range []struct{ part, whole, want int64 }{
		{0, 1000, 0}, {1, 1000, 1}, {999, 1000, 999}, {9999, 10000, 999}, {1000, 1000, 1000}, {2000, 1000, 1000}, {5, 0, 0}, {-5, 10, 0},
		{math.MaxInt64 - 1, math.MaxInt64, 1000}, {math.MaxInt64 / 2, math.MaxInt64, 500}, {500 << 30 / 2, 500 << 30, 500},
	} {
		if got := thousandths(c.part, c.whole); got < c.want-1 || got > c.want {
			t.Errorf("%d of %d: got %d, want %d", c.part, c.whole, got, c.want)
		}
	}
}

// Every reason has a text.
func TestWords(t *testing.T) {
	for reason := ledger.Issued; reason <= ledger.Settled; reason++ {
		if reasonText(reason) == reason.String() {
			t.Errorf("%s has no words", reason)
		}
	}
}
