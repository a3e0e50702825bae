package subject

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
)

// A Browser is a person's, at an installation. It follows no redirect, and
// without a jar it is unknown each time.
type Browser struct {
	*http.Client
	TLS  *tls.Config
	Host string // host:port of the API

	env allinone.DevEnv
}

// NewBrowser opens a browser for an installation. Its jar makes it known once
// somebody has signed in.
func NewBrowser(env allinone.DevEnv) (*Browser, error) {
	base, malformed := url.Parse(env.BaseURL)
	authorities, unread := client.Authorities(env.CAFile)
	if err := errors.Join(malformed, unread); err != nil {
		return nil, err
	}
	trusting := &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}
	b := &Browser{Over(&http.Transport{TLSClientConfig: trusting, MaxIdleConnsPerHost: 64}), trusting, base.Host, env}
	b.Jar, _ = cookiejar.New(nil) // it never fails
	return b, nil
}

// Over is a client that follows no redirect.
func Over(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Dial opens a TLS connection from a local address; nil: any.
func (b *Browser) Dial(ctx context.Context, from net.IP, protocols ...string) (net.Conn, error) {
	const timeout = 30 * time.Second
	dialer, config := &net.Dialer{Timeout: timeout}, b.TLS.Clone()
	if from != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: from}
	}
	config.NextProtos = protocols
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", b.Host)
}

// SignIn tries to sign in, and returns the answer's status; a redirect is a
// success.
func (b *Browser) SignIn(ctx context.Context, email, password string) (status int, err error) {
	return b.Post(ctx, "/sign-in", url.Values{"email": {email}, "password": {password}})
}

// SignInMember signs the demo organization's member in.
func (b *Browser) SignInMember(ctx context.Context) error {
	status, err := b.SignIn(ctx, b.env.ConsoleEmail, b.env.ConsolePassword)
	if err == nil && status != http.StatusSeeOther {
		err = fmt.Errorf("cannot sign in: answered %d", status)
	}
	return err
}

// Post sends a form of the console.
func (b *Browser) Post(ctx context.Context, path string, form url.Values) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, b.env.ConsoleURL+path, strings.NewReader(form.Encode()))
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
