package grants

import (
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A Service gives organizations what they may use beside their plans.
type Service struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
}
