package subject

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
)

// A Browser is a person's, at the console of an installation. It follows no
// redirect, and without a jar it is unknown each time.
type Browser struct {
	*http.Client
	TLS *tls.Config

	console string
}

// NewBrowser trusts the authority in a file.
func NewBrowser(console, caFile string) (*Browser, error) {
	authorities, err := client.Authorities(caFile)
	if err != nil {
		return nil, err
	}
	trusting := &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	return &Browser{Over(&http.Transport{TLSClientConfig: trusting, MaxIdleConnsPerHost: 64}), trusting, console}, nil
}

// Over is a client that follows no redirect.
func Over(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Dial opens a TLS connection from a local address; nil: any.
func (b *Browser) Dial(ctx context.Context, host string, from net.IP, protocols ...string) (net.Conn, error) {
	const timeout = 30 * time.Second
	dialer, config := &net.Dialer{Timeout: timeout}, b.TLS.Clone()
	if from != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: from}
	}
	config.NextProtos = protocols
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", host)
}

// SignIn tries to sign in, and returns the answer's status; a redirect is a
// success.
func (b *Browser) SignIn(ctx context.Context, email, password string) (status int, err error) {
	return b.Post(ctx, "/sign-in", url.Values{"email": {email}, "password": {password}})
}

// Post sends a form of the console.
func (b *Browser) Post(ctx context.Context, path string, form url.Values) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.console+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := b.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}
