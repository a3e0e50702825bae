package app

import "github.com/weirlog/weir/shared/service"

// A VerifyConfig configures a program that reads the ledger's
// database and log, and serves nobody.
type VerifyConfig struct {
	service.Servers `embed:""`
	RetentionConfig `embed:""`
}

// Ledger returns the configuration of the ledger that it reads.
func (c VerifyConfig) Ledger() Config {
	return Config{Config: service.Config{Servers: c.Servers}, RetentionConfig: c.RetentionConfig}
}

// A RebuildConfig configures a program that rebuilds the ledger.
type RebuildConfig struct {
	VerifyConfig `embed:""`
	RulesConfig  `embed:""`
}

// Ledger returns the configuration of the ledger that it makes.
func (c RebuildConfig) Ledger() Config {
	config := c.VerifyConfig.Ledger()
	config.RulesConfig = c.RulesConfig
	return config
}
