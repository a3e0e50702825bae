package ui

import (
	"errors"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// policy allows only the console's own stylesheet, scripts, images and
// forms: no inline or foreign script, no frame. So a client's text that
// escaped the templates could not act.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Protect sets the headers that protect pages, and refuses changes that a
// browser reports as coming from another site (cross-site request
// forgery). Every route of the console passes through it, the sign-in too.
func (p *Pages) Protect(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(p.Handle(func(http.ResponseWriter, *http.Request) error {
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Another site sent this request, so nothing was done. Open the page in the console and try again there.")
	}))
	return withHeaders(protection.Handler(next))
}

// RequireSession passes signed-in people; others get a page with
// the reason, or the sign-in.
func (p *Pages) RequireSession(guard *identity.Guard) func(http.Handler) http.Handler {
	return guard.RequireSession(p.refuse)
}

// RequireReady passes all requests once the guard can judge, and else
// shows a page with the reason.
func (p *Pages) RequireReady(guard *identity.Guard) func(http.Handler) http.Handler {
	return guard.RequireReady(p.refuse)
}

// refreshSeconds is after how many seconds a browser reloads a page of
// a starting process.
const refreshSeconds = "3"

// refuse answers requests that a guard refuses. The page of a starting
// service reloads itself.
func (p *Pages) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var problem *httpapi.Problem
	if errors.As(err, &problem) && problem.Code == httpapi.CodeUnavailable && r.Method == http.MethodGet {
		w.Header().Set("Refresh", refreshSeconds)
	}
	p.writeError(w, r, err)
}

func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Frame-Options", "DENY") // for browsers without frame-ancestors
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
		next.ServeHTTP(w, r)
	})
}
