package app

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/service"
)

// Config configures the ledger. Sizes are bytes.
type Config struct {
	service.Config `embed:""`

	Logs service.LogsConfig `embed:""`

	RulesConfig     `embed:""`
	RetentionConfig `embed:""`

	BatchRecords  int           `help:"Most records that one transaction applies." env:"WEIR_LEDGER_BATCH_RECORDS" default:"20000"`
	BatchWait     time.Duration `help:"Least time between the starts of two transactions that are not full, which is how long records wait for others; after a pause a tenth of it." env:"WEIR_LEDGER_BATCH_WAIT" default:"100ms"`
	CheckInterval time.Duration `help:"How often what was just applied is checked." env:"WEIR_LEDGER_CHECK_INTERVAL" default:"10s"`

	OperatingOrganization string `help:"Id of the organization that runs this installation: its owners see the accounts of all organizations in the console, under Usage. Empty: nobody does there." env:"WEIR_OPERATING_ORGANIZATION"`

	RebuildShares int `kong:"-"` // concurrent transactions of a rebuild; 0: one for each processor
	RebuildBatch  int `kong:"-"` // most entries that a rebuild books at one instant; 0: 50,000
}

// Validate returns all faults of the configuration.
func (c Config) Validate() error {
	errs := []error{c.Config.Validate(), c.rules().Validate(), c.kept().Validate()}
	if c.BatchRecords < 0 || c.BatchWait < 0 || c.CheckInterval < 0 {
		errs = append(errs, errors.New("WEIR_LEDGER_* can't be negative"))
	}
	return errors.Join(errs...)
}

// databaseTime returns the clock of decisions, in microseconds as they
// are stored.
func (c Config) databaseTime() unitofwork.DatabaseTime {
	if c.Clock == nil {
		return postgres.Now
	}
	return func(context.Context, pgx.Tx) (time.Time, error) { return c.Clock().Truncate(time.Microsecond), nil }
}
