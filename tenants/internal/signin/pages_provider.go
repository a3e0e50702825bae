package signin

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/challenge"
	"github.com/weirlog/weir/tenants/internal/oidc"
	"github.com/weirlog/weir/tenants/internal/pages"
)

const oidcPath = identity.SignInPath + "/oidc"

// OIDCCallbackPath is where an identity provider sends people back.
const OIDCCallbackPath = oidcPath + "/callback"

// providerTicketLifetime is how long the browser
// keeps its ticket; the server checks again.
const providerTicketLifetime = 600 // seconds

// providerPages sign in by the identity provider.
type providerPages struct {
	browsers *browsers
	limits   *limits
	provider *Provider
	page     *signInPages
}

// usable passes requests where there is an identity provider.
func (p providerPages) usable(next pages.Handler) pages.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !p.provider.Usable() {
			return httpapi.NotFound("page", r.URL.Path)
		}
		return next(w, r)
	}
}

// start redirects to the identity provider. It is a link, not
// a form: the console's policy lets forms target nothing else.
func (p providerPages) start(w http.ResponseWriter, r *http.Request) error {
	if wait := p.limits.challenge(r); wait > 0 {
		p.page.write(w, r, http.StatusTooManyRequests, "", p.page.TooMany(w, r, wait))
		return nil
	}
	address, ticket, err := p.provider.Start(r.Context(), pages.Destination(r))
	if err != nil {
		return p.writeFault(w, r, err)
	}
	setTicket(w, ticket.Reveal(), providerTicketLifetime)
	http.Redirect(w, r, address, http.StatusSeeOther)
	return nil
}

// finish signs in those whom the identity provider sends back.
func (p providerPages) finish(w http.ResponseWriter, r *http.Request) error {
	query, ticket := r.URL.Query(), takeTicket(w, r)
	if query.Get("code") == "" {
		return p.writeFault(w, r, oidc.ErrRefused) // error=access_denied, or no parameters
	}
	in, err := p.provider.SignIn(r.Context(), p.browsers.Anonymous(r), ticket, query.Get("state"), query.Get("code"))
	if err != nil {
		return p.writeFault(w, r, err)
	}
	if in.First { // first explain that
		ui.SetFlash(w, "identified")
		in.To = pages.AccountPath
	}
	return p.browsers.start(w, r, in.SignInResult, in.To)
}

// writeFault shows why the identity provider's
// sign-in failed, beside the other ways.
func (p providerPages) writeFault(w http.ResponseWriter, r *http.Request, err error) error {
	var text string
	name, status := p.provider.Name(), http.StatusUnprocessableEntity
	switch {
	case errors.Is(err, challenge.ErrNone):
		text = "That took too long, or was begun in another browser. Try again."
	case errors.Is(err, ErrNoMember):
		text = "You are known to " + name + ", but no member here has your e-mail address. Ask an owner or admin to invite you by that address."
	case errors.Is(err, tenants.ErrOtherIdentity):
		text = "The member with your e-mail address is somebody else at " + name + ". If that was you, ask an owner or admin for a code to " +
			"set a new password: after that you can sign in by " + name + " again. Else ask them to remove that member and to invite you."
	case errors.Is(err, ErrUnverified):
		text = name + " has not verified your e-mail address. Have it verified there, or use your password."
	case errors.Is(err, oidc.ErrUnavailable):
		text, status = name+" can't be reached now. Try again, or use your password.", http.StatusServiceUnavailable
	case errors.Is(err, oidc.ErrRefused):
		text = "Signing in by " + name + " did not work. Try again, or use your password."
	default:
		return err
	}
	httpapi.Logger(r.Context()).Warn("a sign-in by the identity provider was refused", slog.String("error", err.Error()))
	p.page.write(w, r, status, "", &ui.Flash{Text: text, Fault: true})
	return nil
}
