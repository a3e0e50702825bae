package people

import (
	"embed"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

//go:embed templates/*.html
var templates embed.FS

// An Entrance completes sign-ins in browsers.
type Entrance interface {
	// Limit counts an attempt under a name, or returns
	// how long to wait for the next one: 0: counted.
	Limit(r *http.Request, name string) (wait time.Duration)
	// Anonymous is a request before authentication.
	Anonymous(r *http.Request) unitofwork.Request
	// CompleteSignIn gives the browser its
	// session, and redirects into the console.
	CompleteSignIn(w http.ResponseWriter, r *http.Request, entry tenants.SignInResult) error
	// CompleteSignInByCode is CompleteSignIn for a sign-in by a code
	// alone. It redirects to where another way to sign in can be added.
	CompleteSignInByCode(w http.ResponseWriter, r *http.Request, entry tenants.SignInResult) error
}

// Pages are the pages of members, invitations and codes.
type Pages struct {
	pages.Set
	Services
	entrance Entrance
}

// NewPages returns the pages of services.
func NewPages(kit *pages.Kit, services Services, entrance Entrance) Pages {
	return Pages{kit.Of(templates), services, entrance}
}

// Mount adds the pages to the settings.
func (p Pages) Mount(settings chi.Router) {
	memberPages{p.Set, p.Members, p.Codes}.mount(settings)
	mailPages{p.Set, p.Mailings}.mount(settings)
	invitationPages{p.Set, p.Invitations}.mount(settings)
}

// MountCodes adds the pages for holders of a code who can't sign in yet.
func (p Pages) MountCodes(router chi.Router) {
	codePages{p.Set, p.Codes, p.entrance}.mount(router)
}

// MountLinks adds the page of mail links.
func (p Pages) MountLinks(router chi.Router, links *mail.Links) {
	behind := linkPages{p.Set, p.Mailings, links, httpapi.NewAnonymousLimit(linksPerMinute, p.TrustedProxies, p.Clock)}
	open := router.With(p.Protect, p.RequireReady(p.Guard))
	open.Get(mail.UnsubscribePath, p.Page(behind.askToUnsubscribe))
	open.Post(mail.UnsubscribePath, p.Page(behind.unsubscribe))
}
