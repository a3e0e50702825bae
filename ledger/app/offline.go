package app

import "github.com/weirlog/weir/shared/service"

// An OfflineConfig configures a program that reads the ledger's
// database and log, and serves nobody. It needs no settings of the
// ledger: terms are in the decisions, and retention is recorded.
type OfflineConfig struct {
	service.Servers `embed:""`
}

// Ledger returns the configuration of the ledger that it reads.
func (c OfflineConfig) Ledger() Config {
	return Config{Config: service.Config{Servers: c.Servers}}
}
