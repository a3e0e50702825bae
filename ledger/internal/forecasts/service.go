package forecasts

import (
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/budgets"
	"github.com/weirlog/weir/ledger/internal/snapshot"
)

// A Service predicts. It changes nothing.
type Service struct {
	Reads    *snapshot.Reader
	Tiers    ledger.Tiers // upgrades to propose
	Balances *balances.Service
	Budgets  *budgets.Service
	Owns     ledger.Owns
}
