package testclocks

import (
	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/snapshot"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
)

// A Service advances the clocks of tests and charges their requests.
type Service struct {
	Reads *snapshot.Reader
	Work  *unitofwork.Writer
	Owns  ledger.Owns
}
