package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// ErrUnreachable means that no message is sent to an address.
var ErrUnreachable = errors.New("webhooks reach the public network only, by port 443 or one from 1024")

// A reach decides which addresses may be connected to. It judges a name's
// address at the moment of connecting: earlier and later ones do not matter.
type reach struct {
	guard    *ssrf.Guardian
	networks []netip.Prefix
}

func newReach(networks []netip.Prefix) reach { return reach{ssrf.New(ssrf.WithAnyPort()), networks} }

// control is net.Dialer.Control.
type control = func(network, address string, connection syscall.RawConn) error

func newDialer(control control) *net.Dialer {
	return &net.Dialer{Timeout: 5 * time.Second, Control: control}
}

// public allows addresses on the public network, or in one of our own.
func (r reach) public(network, address string, connection syscall.RawConn) error {
	if r.own(network, address, connection) == nil {
		return nil
	}
	if err := r.guard.Safe(network, address, connection); err != nil {
		return fmt.Errorf("%s: %w", address, ErrUnreachable)
	}
	if at, err := netip.ParseAddrPort(address); err != nil || !allowedPort(int(at.Port())) {
		return fmt.Errorf("%s: %w", address, ErrUnreachable)
	}
	return nil
}

// own allows addresses in a network of our own.
func (r reach) own(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil || !r.isOwn(at.Addr()) {
		return fmt.Errorf("%s: %w", address, ErrUnreachable)
	}
	return nil
}

func (r reach) isOwn(address netip.Addr) bool {
	return slices.ContainsFunc(r.networks, func(network netip.Prefix) bool { return network.Contains(address.Unmap()) })
}

// allowedPort excludes services that machines have for themselves, such
// as mail and shells.
func allowedPort(port int) bool { return port == 443 || port >= 1024 && port < 1<<16 }

// CheckURL refuses an address that no message could reach, as far as it
// shows without a look-up of its name.
func (c *Client) CheckURL(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return ErrUnreachable
	}
	port := 443
	if parsed.Port() != "" {
		port, _ = strconv.Atoi(parsed.Port()) // url.Parse accepts only digits
	}
	ip, err := netip.ParseAddr(parsed.Hostname())
	switch {
	case err != nil && !c.reach.mayLead(parsed.Hostname()):
		return ErrUnreachable
	case err == nil && c.reach.isOwn(ip), parsed.Scheme == "http" && err != nil && len(c.reach.networks) > 0:
		return nil
	case parsed.Scheme != "https" || !allowedPort(port) || err == nil && c.reach.guard.SafeAddr(ip) != nil:
		return ErrUnreachable
	}
	return nil
}
