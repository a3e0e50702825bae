package erasure_test

import (
	"testing"

	"github.com/weirlog/weir/shared/erasure"
)

// Deletions are remembered for long enough, and not forever.
func TestRetention(t *testing.T) {
	for months, valid := range map[int]bool{0: true, 3: true, 1200: true, -1: false, 2: false, 1201: false} {
		if err := (erasure.Retention{DeletionsMonths: months}).Validate(); (err == nil) != valid {
			t.Errorf("%d months: %v", months, err)
		}
	}
}
