package foresight

import (
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/snapshot"
)

// A Service answers what would be. It decides nothing.
type Service struct {
	Reads    *snapshot.Reader
	Tiers    ledger.Tiers
	Balances *balances.Service
}
