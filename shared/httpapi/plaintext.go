package httpapi

import (
	"net/http"
	"net/netip"
)

// HeaderPlaintext is what a proxy of ours sends over TLS when it
// repeats a request that came to its own socket in plaintext and was
// refused. It counts only from trusted proxies.
const HeaderPlaintext = "Weir-Received-In-Clear"

// PlaintextRequest is as much of a request over plain HTTP as
// matters once it was refused.
type PlaintextRequest struct {
	Key     string     // of the header x-api-key, as it was sent: perhaps a key, perhaps anything
	Address netip.Addr // where the request came from
	Client  string     // its User-Agent, of any length and content

	// Forwarded means that a proxy reported plaintext, or that the request
	// came in plaintext from a proxy trusted to end TLS. A misconfigured
	// proxy makes that so for every request.
	Forwarded bool
}

// seePlaintext reports a request that was refused.
func (s *Server) seePlaintext(r *http.Request) {
	key := r.Header.Get("X-Api-Key")
	if s.SeePlaintext == nil || key == "" {
		return
	}
	repeated := r.TLS != nil && r.Header.Get(HeaderPlaintext) != ""
	s.SeePlaintext(PlaintextRequest{
		Key: key, Address: ClientAddress(r, s.TrustedProxies), Client: r.UserAgent(),
		Forwarded: trusts(s.TrustedProxies, r.RemoteAddr) && !repeated,
	})
}

// trusts reports whether the peer of a connection is one of the trusted proxies.
func trusts(trusted []netip.Prefix, remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && within(trusted, peer.Addr().Unmap())
}
