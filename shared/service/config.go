package service

import (
	"errors"
	"time"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/replica"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/tracing/otlp"
)

// Config holds the settings of every service. Embed it in
// a service's configuration.
type Config struct {
	httpapi.ServerConfig `embed:""`

	Telemetry telemetry.Config `embed:""`
	Tracing   otlp.Config      `embed:""`

	Limits identity.Limits `embed:""`

	Servers `embed:""`

	Replica   replica.Config    `embed:"" prefix:"replica-"`
	Retention bus.Retention     `embed:""`
	Deletions erasure.Retention `embed:""`

	StateDir string `help:"Directory in which what other services published is kept, for a fast start. Empty: all of it is read at each start." env:"WEIR_STATE_DIR"`

	Clock func() time.Time `kong:"-"` // nil: the system's

	// Start names this start of a process with all modules: no credential
	// counts before tenants has compared them in it. Empty in processes of
	// their own, which serve while tenants is away.
	Start string `kong:"-"`
}

// LogsConfig is what a service needs beside Config that consumes weir.logs.v1.
type LogsConfig struct {
	AcceptLostRecords bool `help:"Begin with what a topic still has where this module has never read it and its beginning is gone. What is derived from it then lacks what is gone; without this the module stops and reports what is missing." env:"WEIR_ACCEPT_LOST_RECORDS"`
}

// Validate joins what is wrong with the configuration. It shows no secret.
func (c Config) Validate() error {
	return errors.Join(c.ServerConfig.Validate(), c.Limits.Validate(), c.Servers.Validate(), c.Retention.Validate(), c.Deletions.Validate(), c.Replica.Validate())
}

// NewCredentials returns credentials to be read from weir.credentials.v1.
// They fail Compared until they are compared in Start.
func (c Config) NewCredentials() *identity.Credentials {
	credentials := identity.NewCredentials(c.WallClock())
	credentials.AwaitCompared(c.Start)
	return credentials
}

// WallClock returns Clock, or the system's.
func (c Config) WallClock() func() time.Time {
	if c.Clock != nil {
		return c.Clock
	}
	return time.Now //nolint:forbidigo // this is where the clock of the system comes in
}
