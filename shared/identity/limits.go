package identity

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/rate"
)

// Limits are rate limits. Embed them in a service's configuration. They hold for everything but
// POST /v1/logs, which the tier limits.
type Limits struct {
	ReadsPerMinute     int `help:"Reads and administrative requests per minute and organization, and of each operator's token. POST /v1/logs is limited by the tier instead." env:"WEIR_READS_PER_MINUTE" default:"3000"`
	StrangersPerMinute int `help:"Such requests without a valid credential per minute and client network." env:"WEIR_STRANGERS_PER_MINUTE" default:"300"`
}

// Defaults where the configuration has zero.
const (
	defaultReads     = 3000
	defaultStrangers = 300
)

// How many buckets are kept in memory: of organizations, projects and credentials, and of client
// networks.
const (
	maxCallers  = 1 << 16
	maxNetworks = 1 << 16
)

// Validate joins what is wrong with the limits.
func (l Limits) Validate() error {
	var errs []error
	if l.ReadsPerMinute < 0 {
		errs = append(errs, fmt.Errorf("WEIR_READS_PER_MINUTE is %d: it can't be negative", l.ReadsPerMinute))
	}
	if l.StrangersPerMinute < 0 {
		errs = append(errs, fmt.Errorf("WEIR_STRANGERS_PER_MINUTE is %d: it can't be negative", l.StrangersPerMinute))
	}
	return errors.Join(errs...)
}

// A limiter counts requests. Its tables are bounded: see rate.Table.
type limiter struct {
	reads, strangers int // per minute
	callers          *rate.Table[caller]
	networks         *rate.Table[netip.Prefix]
}

// A caller is whose bucket it is: an organization, a project or a credential.
type caller struct{ kind, id string }

func newLimiter(limits Limits) *limiter {
	return &limiter{
		reads: cmp.Or(limits.ReadsPerMinute, defaultReads), strangers: cmp.Or(limits.StrangersPerMinute, defaultStrangers),
		callers: rate.NewTable[caller](maxCallers), networks: rate.NewTable[netip.Prefix](maxNetworks),
	}
}

// levels are the buckets of a request. An operator, without organization, has a bucket alone.
func (l *limiter) levels(who Principal) []rate.Ask[caller] {
	own := l.reads
	if who.RatePerMinute > 0 {
		own = min(own, who.RatePerMinute)
	}
	levels := make([]rate.Ask[caller], 0, 3)
	if who.Organization != "" {
		levels = append(levels, rate.Ask[caller]{Scope: rate.ScopeOrganization, Key: caller{"organization", who.Organization}, PerMinute: l.reads})
	}
	if who.Project != "" {
		levels = append(levels, rate.Ask[caller]{Scope: rate.ScopeProject, Key: caller{"project", who.Project}, PerMinute: l.reads})
	}
	return append(levels, rate.Ask[caller]{Scope: rate.ScopeKey, Key: caller{who.Kind, who.ID}, PerMinute: own})
}

// stranger is the bucket of a client network.
func (l *limiter) stranger(network netip.Prefix) rate.Ask[netip.Prefix] {
	return rate.Ask[netip.Prefix]{Scope: rate.ScopeClient, Key: network, PerMinute: l.strangers}
}

// limited is the 429 for who has asked too often.
func limited(result rate.Result, who Principal) *httpapi.Problem {
	subject := string(result.Scope)
	if result.Scope == rate.ScopeKey {
		subject = map[string]string{
			contract.CredentialAPIKey: "API key", contract.CredentialServiceToken: "service token", contract.CredentialSession: "session",
		}[who.Kind]
	}
	return httpapi.RateLimited(result, subject)
}
