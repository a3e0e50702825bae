package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"code.dny.dev/ssrf"
)

// Limits of one attempt.
const (
	attemptTimeout = 15 * time.Second // from the look-up of the name to the end of the answer's read part
	maxAnswer      = 1 << 10          // bytes of the answer that are read and kept
	maxHeader      = 16 << 10
)

// ErrRedirect means that an endpoint redirected the message.
var ErrRedirect = errors.New("the endpoint answered with a redirect, which is not followed")

// Config is what a Client may reach beyond the public network.
type Config struct {
	Networks []netip.Prefix // own networks, reachable on any port, and without TLS
	Roots    *x509.CertPool // authorities of certificates; nil: the system's
}

// A Client sends messages to the addresses that people configure, and
// reaches only the public network and the networks of its Config.
type Client struct {
	reach  reach
	secure *sync.Pool // of *http.Client: each holds its last address, and the second garbage collection frees it
	plain  *sync.Pool // of those that reach only the networks of the Config
}

// NewClient returns a client, shared by all senders.
func NewClient(config Config) *Client {
	r := newReach(config.Networks)
	return &Client{r, newHTTPClients(r.public, config.Roots), newHTTPClients(r.own, nil)}
}

// An Answer is an endpoint's answer to a message.
type Answer struct {
	Status int    // 0: no answer
	Text   string // its beginning
}

// OK reports whether the endpoint has accepted the message.
func (a Answer) OK() bool { return a.Status >= 200 && a.Status < 300 }

// Send sends a message once. An error is why there is no answer,
// without the URL, which may hold a secret; see Reason.
func (c *Client) Send(ctx context.Context, m Message) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	header, err := m.header()
	if err != nil {
		return Answer{}, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return Answer{}, withoutURL(err)
	}
	request.Header = header
	clients := c.via(request.URL.Scheme)
	client := clients.Get().(*http.Client)
	defer clients.Put(client)
	response, err := client.Do(request)
	if err != nil {
		return Answer{}, withoutURL(err)
	}
	defer response.Body.Close()
	return read(response)
}

func withoutURL(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

func (c *Client) via(scheme string) *sync.Pool {
	if scheme == "http" {
		return c.plain
	}
	return c.secure
}

// read reads the beginning of an answer. A truncated answer counts
// by its status.
func read(response *http.Response) (Answer, error) {
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	answer := Answer{response.StatusCode, strings.ToValidUTF8(strings.ReplaceAll(string(text), "\x00", ""), "\uFFFD")}
	if response.StatusCode >= 300 && response.StatusCode < 400 {
		return answer, fmt.Errorf("status %d: %w", response.StatusCode, ErrRedirect)
	}
	return answer, nil
}

func newHTTPClients(control control, roots *x509.CertPool) *sync.Pool {
	return &sync.Pool{New: func() any { return newHTTPClient(control, roots) }}
}

// newHTTPClient uses no proxy: that would look names up itself, and
// connect to any address.
func newHTTPClient(control control, roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout:       attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext:     newDialer(control).DialContext,
			TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, TLSHandshakeTimeout: attemptTimeout,
			MaxResponseHeaderBytes: maxHeader, DisableCompression: true, // a compressed answer would exceed the limit
			MaxIdleConns:    2, // of each client in the pool
			IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
		},
	}
}

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

// Reason returns why there was no answer, in fixed words for the
// receiver: an error may have addresses, names and the resolver of this
// network. Names that do not exist and those of this network read alike.
func Reason(err error) string {
	var lookup *net.DNSError
	var connection *net.OpError
	var timeout net.Error
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(err, ErrUnknownKey):
		return "Its secret follows from a key that is configured no more: rotate the secret."
	case errors.Is(err, ErrRedirect):
		return "The endpoint answered with a redirect, which is not followed."
	case errors.Is(err, ErrUnreachable), errors.As(err, &lookup):
		return "The URL leads to no public address, by port 443 or one from 1024."
	case errors.As(err, &connection) && connection.Op == "dial":
		return "The endpoint takes no connection."
	case errors.As(err, &certificate):
		return "The endpoint's certificate is not valid: it is for another name, has expired, or is from an unknown authority."
	case errors.As(err, &timeout) && timeout.Timeout():
		return "The endpoint did not answer in time."
	}
	return "The endpoint gave no answer that can be read."
}

// LogReason returns why there was no answer, for the log: a log outlives
// a deleted endpoint, so it has neither names nor addresses of it.
func LogReason(err error) string {
	var lookup *net.DNSError
	var number syscall.Errno
	switch {
	case errors.Is(err, ErrUnknownKey):
		return err.Error() // which names the missing key
	case errors.Is(err, ErrUnreachable):
		return ErrUnreachable.Error()
	case errors.As(err, &lookup):
		return lookup.Err
	case errors.As(err, &number):
		return number.Error()
	}
	return Reason(err)
}
