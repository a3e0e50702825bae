package balances

import (
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/snapshot"
)

// A Service reads balances.
type Service struct {
	Reads *snapshot.Reader
	Lists *snapshot.Reader // of transfers
	Kept  ledger.Retention

	Waiter *Waiter
}
