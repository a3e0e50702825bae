package httpapi

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/weirlog/weir/shared/fairshare"
)

// anonymousNetworks is the number of client networks with their own limit.
const anonymousNetworks = 1 << 16

// AnonymousLimit limits requests without a credential by client network.
type AnonymousLimit struct {
	networks  *fairshare.Table[netip.Prefix]
	perMinute int
	refusals  *Refusals
	proxies   []netip.Prefix
	clock     func() time.Time
}

// NewAnonymousLimit admits so many requests per minute and network, which
// may come at once. It finds clients behind proxies as ClientAddress does.
func NewAnonymousLimit(perMinute int, proxies []netip.Prefix, clock func() time.Time) *AnonymousLimit {
	return &AnonymousLimit{
		networks: fairshare.NewTable[netip.Prefix](anonymousNetworks), perMinute: perMinute, refusals: NewRefusals(), proxies: proxies, clock: clock,
	}
}

// Admit counts a request, and returns the 429 for one too many, paced
// as other refusals are.
func (l *AnonymousLimit) Admit(r *http.Request) error {
	now, network := l.clock(), ClientNetwork(ClientAddress(r, l.proxies))
	result := l.networks.Take(now, fairshare.KeyLimit[netip.Prefix]{Scope: fairshare.ScopeClient, Key: network, PerMinute: l.perMinute})
	if result.Allowed {
		return nil
	}
	err := RateLimited(result, "address without a credential")
	l.refusals.Pace(r.Context(), now, network, err)
	return err
}
