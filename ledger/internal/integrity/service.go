package integrity

import "github.com/weirlog/weir/ledger/internal/snapshot"

// A Service shows an organization that its books are sound.
type Service struct {
	Reads *snapshot.Reader
}
