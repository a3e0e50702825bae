package app

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	sharedbus "github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/inbox"
	"github.com/weirlog/weir/shared/outbox"
	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/service"
)

// Config configures the ledger. Sizes are bytes.
type Config struct {
	service.Config `embed:""`

	Logs service.LogsConfig `embed:""`

	RulesConfig     `embed:""`
	RetentionConfig `embed:""`

	BatchRecords  int           `help:"Most records that one transaction applies." env:"WEIR_LEDGER_BATCH_RECORDS" default:"20000"`
	BatchWait     time.Duration `help:"Least time between the starts of two transactions that are not full, which is how long records wait for others; after a pause a tenth of it." env:"WEIR_LEDGER_BATCH_WAIT" default:"250ms"`
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

// newPruner returns the pruner of all tables of the schema.
func (a *App) newPruner() *prune.Pruner {
	return prune.New(prune.Config{
		Pool: a.base.Pool, Tables: a.tables,
		Fixed: slices.Concat(postgres.Fixed(), sharedbus.Fixed(), []prune.Bound{cursorkey.Bound()}),
		Clock: a.config.Clock, Metrics: a.base.Metrics, Logger: a.base.Logger,
	})
}

func (a *App) tables(clock func() time.Time) []prune.Table {
	return slices.Concat(postgres.Tables(clock, a.config.kept(), a.config.Deletions), inbox.Tables(clock), a.config.Retention.Tables(clock),
		[]prune.Table{outbox.Table(bus.RelayName)})
}

// Prune removes expired rows at once; Run does so continuously.
func (a *App) Prune(ctx context.Context) error { return a.pruner.RunOnce(ctx) }

// Bounds returns the bounds of all tables of the schema.
func (a *App) Bounds() []prune.Bound { return a.pruner.Bounds() }

// RulesConfig is what organizations may use where nothing else is
// decided. Sizes are bytes.
type RulesConfig struct {
	TierIndieBytes            int64 `help:"Quota of tier indie, bytes per period." env:"WEIR_TIER_INDIE_BYTES" default:"1073741824"`
	TierIndieRequests         int   `help:"Requests per minute of tier indie." env:"WEIR_TIER_INDIE_REQUESTS" default:"60"`
	TierIndieRetention        int   `help:"For how many days what is accepted is kept, tier indie; for what comes from now on." env:"WEIR_TIER_INDIE_RETENTION_DAYS" default:"7"`
	TierBootstrapperBytes     int64 `help:"Quota of tier bootstrapper, bytes per period." env:"WEIR_TIER_BOOTSTRAPPER_BYTES" default:"10737418240"`
	TierBootstrapperRequests  int   `help:"Requests per minute of tier bootstrapper." env:"WEIR_TIER_BOOTSTRAPPER_REQUESTS" default:"300"`
	TierBootstrapperRetention int   `help:"For how many days what is accepted is kept, tier bootstrapper; for what comes from now on." env:"WEIR_TIER_BOOTSTRAPPER_RETENTION_DAYS" default:"30"`
	TierComplianceBytes       int64 `help:"Quota of tier compliance, bytes per period." env:"WEIR_TIER_COMPLIANCE_BYTES" default:"53687091200"`
	TierComplianceRequests    int   `help:"Requests per minute of tier compliance." env:"WEIR_TIER_COMPLIANCE_REQUESTS" default:"600"`
	TierComplianceRetention   int   `help:"For how many days what is accepted is kept, tier compliance; for what comes from now on." env:"WEIR_TIER_COMPLIANCE_RETENTION_DAYS" default:"365"`
	TierScaleBytes            int64 `help:"Quota of tier scale, bytes per period." env:"WEIR_TIER_SCALE_BYTES" default:"536870912000"`
	TierScaleRequests         int   `help:"Requests per minute of tier scale." env:"WEIR_TIER_SCALE_REQUESTS" default:"1800"`
	TierScaleRetention        int   `help:"For how many days what is accepted is kept, tier scale; for what comes from now on." env:"WEIR_TIER_SCALE_RETENTION_DAYS" default:"90"`

	Thresholds []int `help:"Shares of an allowance or budget, in percent and growing, that are announced when they are reached, to organizations that have none of their own." env:"WEIR_LEDGER_THRESHOLDS" default:"50,80,100"`
}

// rules returns the rules of all organizations.
func (c RulesConfig) rules() ledger.Rules {
	rules := ledger.Rules{Tiers: c.tiers(), Thresholds: c.Thresholds}
	if rules.Thresholds == nil {
		rules.Thresholds = ledger.DefaultThresholds()
	}
	return rules
}

// tiers returns the terms of the tiers, with their default.
func (c RulesConfig) tiers() ledger.Tiers {
	tiers := ledger.DefaultTiers()
	for tier, set := range map[ledger.Tier]ledger.Terms{
		ledger.Indie:        {Quota: c.TierIndieBytes, RequestsPerMinute: c.TierIndieRequests, RetentionDays: c.TierIndieRetention},
		ledger.Bootstrapper: {Quota: c.TierBootstrapperBytes, RequestsPerMinute: c.TierBootstrapperRequests, RetentionDays: c.TierBootstrapperRetention},
		ledger.Compliance:   {Quota: c.TierComplianceBytes, RequestsPerMinute: c.TierComplianceRequests, RetentionDays: c.TierComplianceRetention},
		ledger.Scale:        {Quota: c.TierScaleBytes, RequestsPerMinute: c.TierScaleRequests, RetentionDays: c.TierScaleRetention},
	} {
		usual := tiers[tier]
		tiers[tier] = ledger.Terms{
			Quota:             cmp.Or(set.Quota, usual.Quota),
			RequestsPerMinute: cmp.Or(set.RequestsPerMinute, usual.RequestsPerMinute),
			RetentionDays:     cmp.Or(set.RetentionDays, usual.RetentionDays),
		}
	}
	return tiers
}

// RetentionConfig is how long books are kept.
type RetentionConfig struct {
	TransfersMonths  int `help:"For how many months each transfer is kept. What older ones came to is kept by period." env:"WEIR_LEDGER_TRANSFERS_MONTHS" default:"25"`
	UsageHoursMonths int `help:"For how many months usage is kept by the hour; by the day it is kept as long as transfers." env:"WEIR_LEDGER_USAGE_HOURS_MONTHS" default:"3"`
	BooksMonths      int `help:"For how many months after its end the books of a period are kept." env:"WEIR_LEDGER_BOOKS_MONTHS" default:"120"`
}

// kept returns the retention, with its default.
func (c RetentionConfig) kept() ledger.Retention {
	kept := ledger.DefaultRetention()
	return ledger.Retention{Hours: cmp.Or(c.UsageHoursMonths, kept.Hours),
		Transfers: cmp.Or(c.TransfersMonths, kept.Transfers), Books: cmp.Or(c.BooksMonths, kept.Books)}
}
