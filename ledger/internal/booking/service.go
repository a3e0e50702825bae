package booking

import "github.com/weirlog/weir/ledger"

// A Service books what the log and ingest's outcomes say. It writes in the
// caller's transaction, which sees all organizations.
type Service struct {
	Rules ledger.Rules
}
