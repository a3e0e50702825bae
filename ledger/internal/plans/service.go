package plans

import (
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A Service starts and changes plans, and does what they make due.
type Service struct {
	Reads    *snapshot.Reader
	Work     *unitofwork.Writer
	Balances *balances.Service
}
