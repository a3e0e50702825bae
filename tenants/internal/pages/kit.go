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

	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
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

// Config is what pages need. CAFile and TrustedProxies may be empty.
type Config struct {
	Directory      Directory
	Guard          *identity.Guard
	Clock          func() time.Time
	IDs            func() string  // unique and at most 60 URL-safe characters
	Origin         string         // of links and examples, such as https://weir.example; a request's Host can be forged
	CAFile         string         // that examples name; empty: the certificate is publicly trusted
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
	k := &Kit{Config: config, refusals: httpapi.NewRefusals()}
	k.own = ui.NewPages(ui.Settings, templates).Named(k.nameOf)
	return k
}

// nameOf returns the name of a reader's organization for the header, or "".
func (k *Kit) nameOf(ctx context.Context, organization string) string {
	found, err := k.Directory.Organization(ctx, pg.Organization(organization), organization)
	if err != nil {
		return ""
	}
	return found.Name
}

// A Set is the pages of one room.
type Set struct {
	*Kit
	*ui.Pages
}

// Of returns the pages of a room by its templates, templates/*.html in files.
func (k *Kit) Of(files fs.FS) Set { return k.Section(ui.Settings, files) }

// Section returns pages of another section than the settings.
func (k *Kit) Section(section ui.Section, files fs.FS) Set {
	return Set{k, ui.NewPages(section, files).Named(k.nameOf)}
}

// Mount adds the rooms' settings to router, for signed-in members.
func (k *Kit) Mount(router chi.Router, changed *changes.Limiter, rooms ...func(settings chi.Router)) {
	k.own.Mount(router, k.Guard, func(settings chi.Router) {
		settings.Use(changed.Limit(k.page), changes.Whole, k.own.RequireSession(k.Guard))
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

// CallerOf is the signed-in member, who may access their own organization.
func CallerOf(r *http.Request) tenants.Caller {
	principal := identity.FromContext(r.Context())
	return tenants.Caller{ID: principal.Member, Organization: principal.Organization}
}

// RoleOf is the signed-in member's role, as in their session.
func RoleOf(r *http.Request) tenants.Role {
	return tenants.Role(identity.FromContext(r.Context()).Role())
}

// Anonymous is a request before authentication.
func (k *Kit) Anonymous(r *http.Request) unitofwork.Request {
	return unitofwork.Request{
		Address: httpapi.ClientAddress(r, k.TrustedProxies), Client: r.UserAgent(), ID: httpapi.RequestID(r.Context()),
	}
}

// RequestOf is a form's request with its idempotency
// key, so that a form sent twice is executed once.
func (k *Kit) RequestOf(r *http.Request) unitofwork.Request {
	request := k.Anonymous(r)
	request.Caller, request.Role = CallerOf(r), RoleOf(r)
	if word := r.PostForm.Get("form"); tenants.IsID(word) {
		request.IdempotencyKey = word
	}
	return request
}

// MaxChoices is how many projects a form offers.
const MaxChoices = 1000

// Settings is what all settings pages show.
type Settings struct {
	Member       tenants.Member
	Organization tenants.Organization
	Role         tenants.Role // as in the session; pages offer what it may do
	Form         string       // idempotency key of the page's form, if any
}

// Settings finds what all settings pages show.
func (k *Kit) Settings(r *http.Request) (s Settings, err error) {
	caller := CallerOf(r)
	s = Settings{Role: RoleOf(r), Form: k.IDs()}
	if s.Member, err = k.Member(r); err != nil {
		return s, err
	}
	s.Organization, err = k.Directory.Organization(r.Context(), pg.Organization(caller.Organization), caller.Organization)
	return s, err
}

// errEnded means that the signed-in person was removed, or that
// the session has ended, which this process has not consumed yet.
var errEnded = errors.New("the session has ended")

// Ended is errEnded if the caller, or the session,
// is not found; see ProblemOf for the rest.
func Ended(err error) error {
	if errors.Is(err, tenants.ErrNotFound) {
		return errEnded
	}
	return ProblemOf(err, "session", "")
}

// Member is the signed-in member.
func (k *Kit) Member(r *http.Request) (tenants.Member, error) {
	caller := CallerOf(r)
	member, err := k.Directory.Member(r.Context(), pg.Organization(caller.Organization), caller.ID)
	return member, Ended(err)
}

// ProblemOf is the page for an error about the thing called what,
// with the id. Faults of a form are shown beside its fields instead.
func ProblemOf(err error, what, id string) error {
	var full tenants.LimitReached
	switch {
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error())
	case errors.Is(err, tenants.ErrNotFound):
		return httpapi.NotFound(what, id)
	case errors.Is(err, tenants.ErrForbidden):
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"Your role was changed meanwhile and may not do this any more. Ask an owner.")
	case errors.Is(err, tenants.ErrLastOwner):
		return httpapi.NewProblem(http.StatusConflict, "last_owner",
			"This is the only owner of the organization, or the only one who could sign in where passwords are switched off. "+
				"Make another member owner first, who has a passkey or uses the identity provider.")
	case errors.Is(err, tenants.ErrSettled):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"The invitation was accepted or revoked before. Make another one.")
	case errors.Is(err, tenants.ErrReused):
		return httpapi.NewProblem(http.StatusConflict, httpapi.CodeConflict,
			"This form was sent before with other values. Open the page again and fill it in again.")
	case errors.Is(err, tenants.ErrWebhookOff):
		return httpapi.NewProblem(http.StatusConflict, "webhook_off", "The webhook is switched off. Switch it on first.")
	case errors.Is(err, tenants.ErrWebhookRotated):
		return httpapi.NewProblem(http.StatusConflict, "webhook_rotated",
			"The webhook was rotated less than a day ago, and its old secret still signs too. Rotate it again when that has ended.")
	case errors.Is(err, eventstore.ErrConflict):
		return httpapi.Unavailable("Too many changes at once. Go back and send the form again.", time.Second)
	}
	return err
}
