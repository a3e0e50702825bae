package plans

import (
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A Service starts plans, changes them, and does what is due by them.
type Service struct {
	Reads    *snapshot.Reader
	Work     *unitofwork.Writer
	Balances *balances.Service
}
