package identity

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// SessionPrefix begins the secret of every session.
const SessionPrefix = "weirses_"

// SessionCookie carries the secret of a session. By the prefix,
// browsers accept it only over TLS and from the host itself: no other
// host of the domain can set one.
const SessionCookie = "__Host-weir-session"

// Where people are sent without a session, and with one to be renewed.
// The page they came for is the parameter to.
const (
	SignInPath = "/console/sign-in"
	RenewPath  = "/console/session/renew"
)

// arrival is how long a new session may take to reach this process.
const arrival = 500 * time.Millisecond

// roleScope begins the scope that names the role of a session's member.
const roleScope = "role:"

// RoleScope returns the scope for a member's role.
func RoleScope(role string) string { return roleScope + role }

// Role returns the role of the signed-in member, "" for other principals.
func (p Principal) Role() string {
	for _, scope := range p.Scopes {
		if role, ok := strings.CutPrefix(scope, roleScope); ok {
			return role
		}
	}
	return ""
}

// RequireSession passes a request with a valid session in its cookie;
// others are sent to sign in. A page with a session due for renewal
// redirects there first, and back: so a session lasts as long as it is
// used, and requests write nothing. refuse answers requests that can't
// be judged yet, or are too many.
func (g *Guard) RequireSession(refuse func(w http.ResponseWriter, r *http.Request, err error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			principal, err := g.Session(r)
			if err == nil {
				err = g.enter(w, r, principal, nil)
			}
			switch {
			case isProblem(err):
				refuse(w, r, err)
			case err != nil:
				redirect(w, r, SignInPath)
			case navigates(r) && r.URL.Path != RenewPath && g.credentials.due(principal):
				redirect(w, r, RenewPath)
			default:
				next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), principal)))
			}
		})
	}
}

// RequireReady passes all requests once they can be judged: for pages
// that differ for signed-in people. refuse answers the others.
func (g *Guard) RequireReady(refuse func(w http.ResponseWriter, r *http.Request, err error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := g.Ready(); err != nil {
				refuse(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// redirect leads to path, with the requested page.
func redirect(w http.ResponseWriter, r *http.Request, path string) {
	if navigates(r) {
		path += "?to=" + url.QueryEscape(r.URL.RequestURI())
	}
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// navigates reports whether a person opens a page: not a form, which a
// detour would lose, and not a script.
func navigates(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html") // for a browser without Sec-Fetch headers
}

// due reports whether a session should be renewed.
func (c *Credentials) due(session Principal) bool {
	return !session.RenewAt.IsZero() && !c.clock().Before(session.RenewAt)
}

// Session returns the signed-in member; ErrUnknown, ErrRevoked or
// ErrExpired; or the answer for requests that can't be judged yet or
// guess too often. An unknown session gets half a second to arrive: the
// process that issued it may be ahead of this one.
func (g *Guard) Session(r *http.Request) (Principal, error) {
	if err := g.Ready(); err != nil {
		return Principal{}, err
	}
	cookie, err := r.Cookie(SessionCookie)
	if err != nil || !WellFormed(SessionPrefix, cookie.Value) {
		return Principal{}, ErrUnknown
	}
	principal, err := g.credentials.Lookup(cookie.Value)
	if errors.Is(err, ErrUnknown) {
		principal, err = g.arriving(r, cookie.Value)
	}
	if err == nil && principal.Kind != contract.CredentialSession {
		return Principal{}, ErrUnknown
	}
	return principal, err
}

// arriving waits for a session that may be on its way. Guesses soon
// stop waiting: they are counted.
func (g *Guard) arriving(r *http.Request, secret string) (Principal, error) {
	bucket := g.limiter.ofNetwork(g.network(r))
	if tried := g.limiter.networks.Take(g.clock(), bucket); !tried.Allowed {
		return Principal{}, g.tooManyTries(tried)
	}
	ctx, cancel := context.WithTimeout(r.Context(), arrival)
	defer cancel()
	principal, err := g.credentials.Await(ctx, secret)
	if err == nil {
		g.limiter.networks.Refund(g.clock(), bucket)
		return principal, nil
	}
	g.count("credential")
	return principal, err
}

// Await is Lookup, but waits for an unknown credential until ctx ends.
func (c *Credentials) Await(ctx context.Context, secret string) (Principal, error) {
	for {
		c.mu.RLock()
		changed := c.changed
		c.mu.RUnlock()
		principal, err := c.Lookup(secret)
		if !errors.Is(err, ErrUnknown) {
			return principal, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Principal{}, ErrUnknown
		}
	}
}
