package soak

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
)

// A console is where people sign in, each time with an unknown browser.
type console struct {
	url  string
	http *http.Client
}

func newConsole(env allinone.DevEnv) (console, error) {
	authorities, err := client.Authorities(env.CAFile)
	if err != nil {
		return console{}, err
	}
	return console{env.ConsoleURL, &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS13}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// password of all people.
const password = "forty-two weirs upstream"

// signIn tries to sign in, and returns the answer.
func (c console) signIn(ctx context.Context, email, password string) (status int, err error) {
	return c.post(ctx, "/sign-in", url.Values{"email": {email}, "password": {password}})
}

// askForPasskey begins a sign-in by a passkey and abandons it.
func (c console) askForPasskey(ctx context.Context) error {
	status, err := c.post(ctx, "/sign-in/passkey/options", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("nobody is asked for a passkey: answered %d", status)
	}
	return err
}

func (c console) post(ctx context.Context, path string, form url.Values) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// visit signs the tenant's owner in, after a wrong password.
func (t *tenant) visit(ctx context.Context, console console) error {
	if status, err := console.signIn(ctx, t.owner, "wrong "+password); err != nil || status == http.StatusSeeOther {
		return fmt.Errorf("a guess was answered %d: %w", status, err)
	}
	status, err := console.signIn(ctx, t.owner, password)
	if err == nil && status != http.StatusSeeOther {
		err = fmt.Errorf("%s can't sign in: answered %d", t.owner, status)
	}
	return err
}
