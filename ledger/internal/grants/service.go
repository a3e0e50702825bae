package grants

import (
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A Service adds grants to organizations and adjusts their usage.
type Service struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
}
