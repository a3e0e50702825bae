package pages

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/body"
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

//go:embed templates/*.html
var templates embed.FS

// A Directory finds a page's reader.
type Directory interface {
	Member(ctx context.Context, as pg.Organization, id string) (tenants.Member, error)
	Organization(ctx context.Context, as pg.Organization, id string) (tenants.Organization, error)
}

// Config is what pages need. Only TrustedProxies may be empty.
type Config struct {
	Directory      Directory
	Guard          *identity.Guard
	Clock          func() time.Time
	IDs            func() string  // unique and at most 60 URL-safe characters
	Origin         string         // of links and examples, such as https://weir.example; a request's Host can be forged
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is trusted
}

// A Kit makes the rooms' pages.
type Kit struct {
	Config
	own      *ui.Pages
	refusals *httpapi.Refusals
}

// NewKit returns a kit.
func NewKit(config Config) *Kit {
	return &Kit{config, ui.NewPages(ui.Settings, templates), httpapi.NewRefusals()}
}

// A Set is the pages of one room.
type Set struct {
	*Kit
	*ui.Pages
}

// Of returns the pages of a room by its templates, templates/*.html in files.
func (k *Kit) Of(files fs.FS) Set { return Set{k, ui.NewPages(ui.Settings, files)} }

// Mount adds the rooms' settings to router, for signed-in members.
func (k *Kit) Mount(router chi.Router, changed *changes.Limiter, rooms ...func(settings chi.Router)) {
	k.own.Mount(router, k.Guard, func(settings chi.Router) {
		settings.Use(changed.Limit(k.page), body.Whole, k.own.RequireSession(k.Guard))
		settings.Get("/console/settings", showSettings)
		for _, mount := range rooms {
			mount(settings)
		}
	})
}

func (k *Kit) page(handle Handler) http.HandlerFunc { return Set{k, k.own}.Page(handle) }

// A Handler answers a request, or returns why it can't; see ui.Pages.Handle.
type Handler = func(w http.ResponseWriter, r *http.Request) error

// Page responds as handle does. A browser whose session
// has ended loses its cookie: until this process has
// consumed the end, it would cause a redirect loop.
func (s Set) Page(handle Handler) http.HandlerFunc {
	return s.Handle(func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		if !errors.Is(err, errEnded) && !errors.Is(err, unitofwork.ErrRemoved) {
			return err
		}
		http.SetCookie(w, SessionCookie("", -1))
		http.Redirect(w, r, identity.SignInPath, http.StatusSeeOther)
		return nil
	})
}

// For is a page for roles with a permission.
func (s Set) For(p tenants.Permission, handle Handler) http.HandlerFunc {
	return s.Page(permitted(p, handle))
}

// Confirmed is a page for roles with a permission, after a
// recent proof of identity.
func (s Set) Confirmed(p tenants.Permission, handle Handler) http.HandlerFunc {
	return s.Page(permitted(p, s.RequireConfirmed(handle)))
}

// SessionCookie is the cookie of a session's secret, for maxAge seconds.
func SessionCookie(secret string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: identity.SessionCookie, Value: secret, Path: "/", MaxAge: maxAge, Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
	}
}
