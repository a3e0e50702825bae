package app

import (
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/service"
)

// A VerifyConfig configures a program that reads the ledger's
// database and log, and serves nobody.
type VerifyConfig struct {
	DatabaseURL httpapi.Secret `help:"URL of the ledger's Postgres database, such as postgres://user:password@host/database." env:"WEIR_DATABASE_URL"`

	Brokers      []string   `help:"Kafka brokers, host:port." env:"WEIR_BROKERS"`
	BrokerAccess bus.Access `embed:"" prefix:"brokers-"`

	RetentionConfig `embed:""`
}

// Ledger returns the configuration of the ledger that it reads.
func (c VerifyConfig) Ledger() Config {
	return Config{
		Config:          service.Config{DatabaseURL: c.DatabaseURL, Brokers: c.Brokers, BrokerAccess: c.BrokerAccess},
		RetentionConfig: c.RetentionConfig,
	}
}

// A RebuildConfig configures a program that makes the ledger anew.
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
