package signin

import (
	"net/http"

	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

// renewSession extends a session in use, gives it
// a new secret, and redirects to the destination.
func (p *Pages) renewSession(w http.ResponseWriter, r *http.Request) error {
	cookie, err := r.Cookie(identity.SessionCookie)
	if err != nil {
		return err
	}
	presented, err := tenants.ParseSecret(tenants.SessionPrefix, cookie.Value)
	if err != nil {
		return err
	}
	session, secret, err := p.services.Sessions.Renew(r.Context(), p.requestOf(r), identity.FromContext(r.Context()).ID, presented)
	if err != nil {
		return ended(err)
	}
	if secret != presented {
		p.keepSession(w, session, secret)
	}
	http.Redirect(w, r, pages.Destination(r), http.StatusSeeOther)
	return nil
}
