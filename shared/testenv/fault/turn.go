package fault

import (
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv/internal/lease"
)

// turns lets one top-level test at a time inject faults: another would
// not expect what happens to its servers.
var turns struct {
	mu      sync.Mutex
	holders lease.Register[turn]
}

type turn struct{}

// End lets the next test inject faults.
func (turn) End(testing.TB) { turns.mu.Unlock() }

// Turn waits until no other top-level test of the package injects
// faults. The turn ends with the test.
func Turn(t testing.TB) {
	t.Helper()
	turns.holders.Acquire(t, lease.TopLevel(t), func() (turn, error) {
		turns.mu.Lock()
		return turn{}, nil
	})
}
