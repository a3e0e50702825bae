package app

import (
	"cmp"

	"github.com/weirlog/weir/ledger"
)

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
