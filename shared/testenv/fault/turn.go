package fault

import (
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv/internal/lease"
)

// turns lets one top-level test at a time do faults: several
// would wonder what happens to their servers.
var turns struct {
	mu      sync.Mutex
	holders lease.Register[turn]
}

type turn struct{}

// End lets the next one do faults.
func (turn) End(testing.TB) { turns.mu.Unlock() }

// Turn waits until no other top-level test of the package does
// faults. The test's end ends its turn.
func Turn(t testing.TB) {
	t.Helper()
	turns.holders.Acquire(t, lease.TopLevel(t), func() (turn, error) {
		turns.mu.Lock()
		return turn{}, nil
	})
}
