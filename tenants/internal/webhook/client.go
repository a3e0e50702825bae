package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"
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
