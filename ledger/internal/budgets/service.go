package budgets

import (
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A Service gives projects and keys a share of their organization's quota.
type Service struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
}
