package httpapi

import (
	"net/http"
	"net/netip"
)

// HeaderPlaintext is sent by our proxy over TLS when it reports a
// refused request that came to its own socket in plaintext. It counts
// only from trusted proxies.
const HeaderPlaintext = "Weir-Received-In-Clear"

// PlaintextRequest is what matters of a refused request over plain HTTP.
type PlaintextRequest struct {
	Key     string     // of the header x-api-key, unchecked: perhaps no key
	Address netip.Addr // where the request came from
	Client  string     // its User-Agent, of any length and content

	// Forwarded means that a proxy reported plaintext, or that the
	// request came in plaintext from a proxy trusted to end TLS. A
	// misconfigured proxy causes that for every request.
	Forwarded bool
}

// seePlaintext reports a refused request.
func (s *Server) seePlaintext(r *http.Request) {
	key := r.Header.Get("X-Api-Key")
	if s.OnPlaintext == nil || key == "" {
		return
	}
	repeated := r.TLS != nil && r.Header.Get(HeaderPlaintext) != ""
	s.OnPlaintext(PlaintextRequest{
		Key: key, Address: ClientAddress(r, s.TrustedProxies), Client: r.UserAgent(),
		Forwarded: trusts(s.TrustedProxies, r.RemoteAddr) && !repeated,
	})
}

// trusts reports whether a connection's peer is a trusted proxy.
func trusts(trusted []netip.Prefix, remote string) bool {
	peer, err := netip.ParseAddrPort(remote)
	return err == nil && within(trusted, peer.Addr().Unmap())
}
