package integrity

import (
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/snapshot"
)

// A Service verifies an organization's books.
type Service struct {
	Reads *snapshot.Reader
	Kept  ledger.Retention
}
