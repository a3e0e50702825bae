package httpapi

import (
	"net/http"
	"net/netip"
	"strings"
)

// ClientAddress returns the origin of r: the peer, or behind trusted
// proxies the last address in X-Forwarded-For that is not one of
// theirs; earlier ones may be forged. Zero if the peer has no address.
func ClientAddress(r *http.Request, trusted []netip.Prefix) netip.Addr {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	client := peer.Addr().Unmap()
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && within(trusted, client); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		client = hop.Unmap()
	}
	return client
}

// ClientNetwork returns the network by which limits count a client: an IPv4
// address, or the first 64 bits of an IPv6 one, whose rest a client chooses.
func ClientNetwork(client netip.Addr) netip.Prefix {
	bits := 64
	if client.Is4() {
		bits = 32
	}
	network, err := client.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}

func within(prefixes []netip.Prefix, address netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}

// AddressText returns an address as text; empty for none.
func AddressText(address netip.Addr) string {
	if !address.IsValid() {
		return ""
	}
	return address.String()
}
