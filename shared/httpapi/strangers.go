package httpapi

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/weirlog/weir/shared/rate"
)

// Bounds of what clients without a credential may ask for.
const (
	strangersPerMinute = 600
	strangersNetworks  = 1 << 16
)

// Strangers limits what is answered without a credential, such as the OpenAPI document, by client
// network: a flood of it would take the processors from those who have one.
type Strangers struct {
	networks *rate.Table[netip.Prefix]
	refusals *Refusals
	proxies  []netip.Prefix
	clock    func() time.Time
}

// NewStrangers has seen no request. Clients behind proxies are found as by ClientAddress.
func NewStrangers(proxies []netip.Prefix, clock func() time.Time) *Strangers {
	return &Strangers{networks: rate.NewTable[netip.Prefix](strangersNetworks), refusals: NewRefusals(), proxies: proxies, clock: clock}
}

// Admit counts a request, and returns the 429 for one too many, paced as other refusals are.
func (s *Strangers) Admit(r *http.Request) error {
	now, network := s.clock(), ClientNetwork(ClientAddress(r, s.proxies))
	result := s.networks.Take(now.UnixNano(), rate.Ask[netip.Prefix]{Scope: rate.ScopeClient, Key: network, PerMinute: strangersPerMinute})
	if result.Allowed {
		return nil
	}
	err := RateLimited(result, "address without a credential")
	s.refusals.Pace(r.Context(), now, network, err)
	return err
}

// Limit admits requests to next.
func (s *Strangers) Limit(next http.Handler) http.Handler {
	return Handle(func(w http.ResponseWriter, r *http.Request) error {
		if err := s.Admit(r); err != nil {
			return err
		}
		next.ServeHTTP(w, r)
		return nil
	})
}
