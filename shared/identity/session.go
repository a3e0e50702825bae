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

// SessionCookie carries the secret of a session. The prefix makes browsers accept it only over TLS and only from the
// host itself, so that no neighbor under the same domain can plant one.
const SessionCookie = "__Host-weir-session"

// Where people are sent without a session, and with one that shall be renewed. What they wanted to see stands behind
// it, as the parameter to.
const (
	SignInPath = "/console/sign-in"
	RenewPath  = "/console/session/renew"
)

// arrival is how long a session that was just made may take to reach this process.
const arrival = 500 * time.Millisecond

// roleScope begins the scope that names the role of a session's member.
const roleScope = "role:"

// RoleScope is the scope by which a session says the role of its member.
func RoleScope(role string) string { return roleScope + role }

// Role is the role of the member who has signed in, "" for other principals.
func (p Principal) Role() string {
	for _, scope := range p.Scopes {
		if role, ok := strings.CutPrefix(scope, roleScope); ok {
			return role
		}
	}
	return ""
}

// RequireSession lets a request pass that carries a valid session in its cookie; others are sent to sign in. Who looks at
// a page with a session that was not renewed for long is sent to have it renewed first, and back: so a session lasts as
// long as it is used, and a request writes nothing.
func RequireSession(credentials *Credentials) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			principal, err := Session(credentials, r)
			if err != nil {
				redirect(w, r, SignInPath)
				return
			}
			if navigates(r) && r.URL.Path != RenewPath && credentials.due(principal) {
				redirect(w, r, RenewPath)
				return
			}
			next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), principal)))
		})
	}
}

// redirect leads to path, and lets it know where a reader wanted to go.
func redirect(w http.ResponseWriter, r *http.Request, path string) {
	if navigates(r) {
		path += "?to=" + url.QueryEscape(r.URL.RequestURI())
	}
	http.Redirect(w, r, path, http.StatusSeeOther)
}

// navigates tells whether a person looks at a page: not a form that is sent, which would be lost on a detour, and not a
// script that asks for something.
func navigates(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		return mode == "navigate"
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html") // of a browser that does not say
}

// due tells whether a session shall be renewed.
func (c *Credentials) due(session Principal) bool {
	return !session.RenewAt.IsZero() && !c.clock().Before(session.RenewAt)
}

// Session returns who has signed in, or ErrUnknown, ErrRevoked or ErrExpired. One that is unknown but well-formed gets
// half a second to arrive: the process that issued it may be ahead of this one.
func Session(credentials *Credentials, r *http.Request) (Principal, error) {
	cookie, err := r.Cookie(SessionCookie)
	if err != nil || !WellFormed(SessionPrefix, cookie.Value) {
		return Principal{}, ErrUnknown
	}
	ctx, cancel := context.WithTimeout(r.Context(), arrival)
	defer cancel()
	principal, err := credentials.Await(ctx, cookie.Value)
	if err == nil && principal.Kind != contract.CredentialSession {
		return Principal{}, ErrUnknown
	}
	return principal, err
}

// Await is Lookup, but waits for an unknown credential to arrive until ctx ends.
func (c *Credentials) Await(ctx context.Context, secret string) (Principal, error) {
	for {
		c.mu.RLock()
		news := c.news
		c.mu.RUnlock()
		principal, err := c.Lookup(secret)
		if !errors.Is(err, ErrUnknown) {
			return principal, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return Principal{}, ErrUnknown
		}
	}
}
