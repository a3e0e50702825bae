package accounts

import (
	"github.com/weirlog/weir/ledger/internal/balances"
	"github.com/weirlog/weir/ledger/internal/snapshot"
)

// A Service shows the accounts of all organizations to ingest and to operators.
type Service struct {
	Reads    *snapshot.Reader
	Balances *balances.Service
}
