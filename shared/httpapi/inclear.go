package httpapi

import (
	"net/http"
	"net/netip"
)

// HeaderInClear is what a proxy of ours sends over TLS, when it repeats a request that it took from its own socket in
// clear and has refused. It counts only from trusted proxies.
const HeaderInClear = "Weir-Received-In-Clear"

// InClear is as much of a request over plain HTTP as matters once it was refused.
type InClear struct {
	Key     string     // of the header x-api-key, as it was sent: perhaps a key, perhaps anything
	Address netip.Addr // where the request came from
	Client  string     // what its sender says it is; may be long, and anything

	// ByWord says that nobody here saw the request in clear: a proxy says that its client sent it so, or the request came in
	// clear from a proxy that is trusted to end TLS. One wrong setting of the proxy would make that so for every request.
	ByWord bool
}

// seeInClear tells of a request that was refused.
func (s *Server) seeInClear(r *http.Request) {
	key := r.Header.Get("X-Api-Key")
	if s.SeeInClear == nil || key == "" {
		return
	}
	repeated := r.TLS != nil && r.Header.Get(HeaderInClear) != ""
	s.SeeInClear(InClear{
		Key: key, Address: ClientAddress(r, s.TrustedProxies), Client: r.UserAgent(),
		ByWord: trusts(s.TrustedProxies, r.RemoteAddr) && !repeated,
	})
}

// trusts tells whether the peer of a connection is one of the trusted proxies.
func trusts(trusted []netip.Prefix, remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && within(trusted, peer.Addr().Unmap())
}
