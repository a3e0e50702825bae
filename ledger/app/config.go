package app

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/service"
)

// Config configures the ledger. Sizes are bytes.
type Config struct {
	service.Config `embed:""`

	Logs service.LogsConfig `embed:""`

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

	BatchRecords  int           `help:"Most records that one transaction applies." env:"WEIR_LEDGER_BATCH_RECORDS" default:"20000"`
	BatchWait     time.Duration `help:"How long the first record of a transaction waits for others." env:"WEIR_LEDGER_BATCH_WAIT" default:"10ms"`
	CheckInterval time.Duration `help:"How often what was just applied is checked." env:"WEIR_LEDGER_CHECK_INTERVAL" default:"10s"`

	Thresholds []int `help:"Shares of an allowance or budget, in percent and growing, that are announced when they are reached, to organizations that have none of their own." env:"WEIR_LEDGER_THRESHOLDS" default:"50,80,100"`

	TransfersMonths  int `help:"For how many months each transfer is kept. What older ones came to is kept by period." env:"WEIR_LEDGER_TRANSFERS_MONTHS" default:"25"`
	UsageHoursMonths int `help:"For how many months usage is kept by the hour; by the day it is kept as long as transfers." env:"WEIR_LEDGER_USAGE_HOURS_MONTHS" default:"3"`

	BooksMonths int `help:"For how many months after its end the books of a period are kept." env:"WEIR_LEDGER_BOOKS_MONTHS" default:"120"`

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

// databaseTime returns the clock of decisions.
func (c Config) databaseTime() unitofwork.DatabaseTime {
	if c.Clock == nil {
		return postgres.Now
	}
	return func(context.Context, pgx.Tx) (time.Time, error) { return c.Clock(), nil }
}

// rules returns the rules of all organizations.
func (c Config) rules() ledger.Rules {
	rules := ledger.Rules{Tiers: c.tiers(), Thresholds: c.Thresholds}
	if rules.Thresholds == nil {
		rules.Thresholds = ledger.DefaultThresholds()
	}
	return rules
}

// kept returns the retention, with its default.
func (c Config) kept() ledger.Retention {
	kept := ledger.DefaultRetention()
	return ledger.Retention{Hours: cmp.Or(c.UsageHoursMonths, kept.Hours),
		Transfers: cmp.Or(c.TransfersMonths, kept.Transfers), Books: cmp.Or(c.BooksMonths, kept.Books)}
}

// tiers returns the terms of the tiers, with their default.
func (c Config) tiers() ledger.Tiers {
	tiers := ledger.DefaultTiers()
	for tier, set := range map[ledger.Tier]ledger.Terms{
		ledger.Indie:        {Quota: c.TierIndieBytes, RequestsPerMinute: c.TierIndieRequests, RetentionDays: c.TierIndieRetention},
		ledger.Bootstrapper: {Quota: c.TierBootstrapperBytes, RequestsPerMinute: c.TierBootstrapperRequests, RetentionDays: c.TierBootstrapperRetention},
		ledger.Compliance:   {Quota: c.TierComplianceBytes, RequestsPerMinute: c.TierComplianceRequests, RetentionDays: c.TierComplianceRetention},
		ledger.Scale:        {Quota: c.TierScaleBytes, RequestsPerMinute: c.TierScaleRequests, RetentionDays: c.TierScaleRetention},
	} {
		terms := tiers[tier]
		if set.Quota != 0 {
			terms.Quota = set.Quota
		}
		if set.RequestsPerMinute != 0 {
			terms.RequestsPerMinute = set.RequestsPerMinute
		}
		if set.RetentionDays != 0 {
			terms.RetentionDays = set.RetentionDays
		}
		tiers[tier] = terms
	}
	return tiers
}
