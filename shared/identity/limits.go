package identity

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/httpapi"
)

// Limits are rate limits. Embed them in a service's configuration. They
// apply to all but POST /v1/logs, which the tier limits.
type Limits struct {
	ReadsPerMinute     int `help:"Reads and administrative requests per minute and organization, and of each operator's token. POST /v1/logs is limited by the tier instead." env:"WEIR_READS_PER_MINUTE" default:"3000"`
	AnonymousPerMinute int `help:"Such requests without a valid credential per minute and client network. Until the next version also WEIR_STRANGERS_PER_MINUTE." env:"WEIR_ANONYMOUS_PER_MINUTE,WEIR_STRANGERS_PER_MINUTE" aliases:"strangers-per-minute" default:"300"`
}

// Defaults for zero.
const (
	defaultReads     = 3000
	defaultAnonymous = 300
)

// Limits of buckets in memory: for organizations, projects and
// credentials, and for client networks.
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
	if l.AnonymousPerMinute < 0 {
		errs = append(errs, fmt.Errorf("WEIR_ANONYMOUS_PER_MINUTE is %d: it can't be negative", l.AnonymousPerMinute))
	}
	return errors.Join(errs...)
}

// A limiter counts requests. Its tables are bounded: see fairshare.Table.
type limiter struct {
	reads, anonymous int // per minute
	callers          *fairshare.Table[caller]
	networks         *fairshare.Table[netip.Prefix]
}

// A caller owns a bucket: an organization, a project or a credential.
type caller struct{ kind, id string }

func newLimiter(limits Limits) *limiter {
	return &limiter{
		reads: cmp.Or(limits.ReadsPerMinute, defaultReads), anonymous: cmp.Or(limits.AnonymousPerMinute, defaultAnonymous),
		callers: fairshare.NewTable[caller](maxCallers), networks: fairshare.NewTable[netip.Prefix](maxNetworks),
	}
}

// levels returns the buckets of a request. An operator, without
// organization, has its own bucket.
func (l *limiter) levels(who Principal) []fairshare.KeyLimit[caller] {
	own := l.reads
	if who.RatePerMinute > 0 {
		own = min(own, who.RatePerMinute)
	}
	levels := make([]fairshare.KeyLimit[caller], 0, 3)
	if who.Organization != "" {
		levels = append(levels, fairshare.KeyLimit[caller]{Scope: fairshare.ScopeOrganization, Key: caller{"organization", who.Organization}, PerMinute: l.reads})
	}
	if who.Project != "" {
		levels = append(levels, fairshare.KeyLimit[caller]{Scope: fairshare.ScopeProject, Key: caller{"project", who.Project}, PerMinute: l.reads})
	}
	return append(levels, fairshare.KeyLimit[caller]{Scope: fairshare.ScopeKey, Key: caller{who.Kind, who.ID}, PerMinute: own})
}

// ofNetwork returns the bucket of a client network.
func (l *limiter) ofNetwork(network netip.Prefix) fairshare.KeyLimit[netip.Prefix] {
	return fairshare.KeyLimit[netip.Prefix]{Scope: fairshare.ScopeClient, Key: network, PerMinute: l.anonymous}
}

// limited returns the 429 for too many requests.
func limited(result fairshare.Result, who Principal) *httpapi.Problem {
	subject := string(result.Scope)
	if result.Scope == fairshare.ScopeKey {
		subject = map[string]string{
			contract.CredentialAPIKey: "API key", contract.CredentialServiceToken: "service token", contract.CredentialSession: "session",
		}[who.Kind]
	}
	return httpapi.RateLimited(result, subject)
}
