package app

import (
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/tenants"
)

// Config is what tenants needs to run.
type Config struct {
	httpapi.ServerConfig `embed:""`

	Telemetry telemetry.Config `embed:""`

	Brokers       []string       `help:"Kafka brokers, host:port." env:"WEIR_BROKERS"`
	DatabaseURL   httpapi.Secret `help:"URL of the Postgres database, such as postgres://user:password@host/database." env:"WEIR_DATABASE_URL"`
	OperatorToken httpapi.Secret `help:"The operator's token: weirsvc_ and 48 hex digits. A new one revokes the one before." env:"WEIR_OPERATOR_TOKEN"`

	InForceWait time.Duration `help:"How long an answer may wait for a new or revoked credential to be in force." env:"WEIR_IN_FORCE_WAIT" default:"1s"`

	Clock func() time.Time `kong:"-"` // the system's where nil
}

// Validate joins what is wrong with the configuration. It shows no secret.
func (c Config) Validate() error {
	errs := []error{c.ServerConfig.Validate()}
	errs = append(errs, checkBrokers(c.Brokers), checkDatabaseURL(c.DatabaseURL))
	if c.InForceWait < 0 {
		errs = append(errs, fmt.Errorf("WEIR_IN_FORCE_WAIT is %s: it can't be negative", c.InForceWait))
	}
	if _, err := c.operator(); c.OperatorToken != "" && err != nil {
		errs = append(errs, fmt.Errorf("WEIR_OPERATOR_TOKEN is no service token: %w", err))
	}
	return errors.Join(errs...)
}

func checkBrokers(brokers []string) error {
	if len(brokers) == 0 {
		return errors.New("WEIR_BROKERS is empty: name at least one broker as host:port")
	}
	return nil
}

func checkDatabaseURL(text httpapi.Secret) error {
	if u, err := url.Parse(text.Reveal()); err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("WEIR_DATABASE_URL is not a URL such as postgres://user:password@host/database")
	}
	return nil
}

func (c Config) operator() (tenants.Secret, error) {
	return tenants.ParseSecret(tenants.ServiceTokenPrefix, c.OperatorToken.Reveal())
}
