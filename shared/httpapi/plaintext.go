package httpapi

import (
	"net/http"
	"net/netip"
)

// HeaderPlaintext is what a proxy of ours sends over TLS, when it repeats a request that it took from its own socket in
// clear and has refused. It counts only from trusted proxies.
const HeaderPlaintext = "Weir-Received-In-Clear"

// PlaintextRequest is as much of a request over plain HTTP as matters once it was refused.
type PlaintextRequest struct {
	Key     string     // of the header x-api-key, as it was sent: perhaps a key, perhaps anything
	Address netip.Addr // where the request came from
	Client  string     // what its sender says it is; may be long, and anything

	// Forwarded means that nobody here saw the request in plaintext: a proxy reports that its client sent it so, or it came in
	// clear from a proxy that is trusted to end TLS. One wrong setting of the proxy would make that so for every request.
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
