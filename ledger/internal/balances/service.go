package balances

import (
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/horizon"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/shared/contract"
)

// A Service reads balances.
type Service struct {
	Reads *snapshot.Reader
	Tiers ledger.Tiers
	Kept  ledger.Retention
	End   horizon.LogEnd // nil: nobody knows where the log ends

	ends   latest[horizon.End]
	booked latest[contract.Positions]
}
