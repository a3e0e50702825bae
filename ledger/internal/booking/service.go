package booking

import "github.com/weirlog/weir/ledger"

// A Service books accepted logs and the outcomes of requests. It writes
// in the caller's transaction, which sees all organizations.
type Service struct {
	Rules ledger.Rules
}
