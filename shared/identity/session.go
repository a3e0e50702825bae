package identity

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/contract"
)

// SessionPrefix begins the secret of every session.
const SessionPrefix = "weirses_"

// SessionCookie carries the secret of a session. The prefix makes browsers accept it only over TLS and only from the
// host itself, so that no neighbor under the same domain can plant one.
const SessionCookie = "__Host-weir-session"

// SignInPath is where people without a session are sent.
const SignInPath = "/console/sign-in"

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

// RequireSession lets a request pass that carries a valid session in its cookie; others are sent to sign in.
func RequireSession(credentials *Credentials) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			principal, err := Session(credentials, r)
			if err != nil {
				http.Redirect(w, r, SignInPath, http.StatusSeeOther)
				return
			}
			next.ServeHTTP(w, r.WithContext(NewContext(r.Context(), principal)))
		})
	}
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
