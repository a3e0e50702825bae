// Package console is the pages of tenants: signing in and out, and the settings of an organization. Whatever they show
// or change belongs to the organization of the session.
package console

import (
	"bytes"
	"embed"
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/fair"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/body"
	"github.com/weirlog/weir/tenants/internal/changes"
	"github.com/weirlog/weir/tenants/internal/postgres"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

//go:embed templates/*.html
var templates embed.FS

// Config is what the pages work with. All of it is required but TrustedProxies.
type Config struct {
	Registrar      *registrar.Registrar
	Views          *postgres.Views
	Guard          *identity.Guard
	Clock          func() time.Time
	IDs            func() string // unique and at most 60 URL-safe characters
	Changes        *changes.Limiter
	Failures       *registrar.Failures
	Metrics        prometheus.Registerer
	Origin         string         // of links and examples, such as https://weir.example; what a request says of its host is anybody's word
	TrustedProxies []netip.Prefix // whose X-Forwarded-For says where a request came from
}

type console struct {
	Config
	pages      *ui.Pages
	byNetwork  *attempts
	byQuestion *attempts // sign-ins without a password, by network too: who guesses passwords takes nothing from them
	byEmail    *attempts // and by code
	byDevice   *attempts
	byMember   *attempts // who has signed in
	lookups    *fair.Queue
	metrics    *metrics
}

// maxForm is the largest form, in bytes.
const maxForm = 64 << 10

// Mount adds the pages to router.
func Mount(router chi.Router, config Config) {
	c := &console{Config: config, pages: ui.NewPages(ui.Settings, templates)}
	c.lookups, c.metrics = newLookups(), newMetrics(config.Metrics, config.Registrar.Passwords)
	c.byNetwork = newAttempts(config.Clock, perNetwork, networkRefill)
	c.byQuestion = newAttempts(config.Clock, perNetwork, networkRefill)
	c.byDevice = newAttempts(config.Clock, perDevice, deviceRefill)
	c.byEmail = newAttempts(config.Clock, perEmail, emailRefill)
	c.byMember = newAttempts(config.Clock, perMember, memberRefill)
	router.Group(func(open chi.Router) {
		open.Use(c.pages.Protect, c.pages.RequireReady(c.Guard))
		open.Get("/console", c.goHome)
		open.Get("/console/*", c.page(c.noPage)) // what no module has
		open.Get(identity.SignInPath, c.page(c.showSignIn))
		open.Post(identity.SignInPath, c.page(c.signIn))
		open.Post(signInPasskeyPath+"/options", c.page(c.withPasskeys(c.askWhoSignsIn)))
		open.Post(signInPasskeyPath, c.page(c.withPasskeys(c.signInByPasskey)))
		open.Get(oidcPath, c.page(c.withProvider(c.startOIDC)))
		open.Get(OIDCCallbackPath, c.page(c.withProvider(c.finishOIDC)))
		open.Post("/console/sign-out", c.page(c.signOut))
		c.mountCodes(open)
	})
	c.pages.Mount(router, config.Guard, c.mountSettings)
	router.Group(c.mountSession)
}

// mountSession adds what is asked for on the way to other pages.
func (c *console) mountSession(detours chi.Router) {
	detours.Use(c.pages.Protect, c.pages.RequireSession(c.Guard))
	detours.Get(confirmPath, c.page(c.showConfirm))
	detours.Post(confirmPath, c.page(c.confirm))
	detours.Post(confirmPasskeyPath+"/options", c.page(c.withPasskeys(c.askToConfirm)))
	detours.Post(confirmPasskeyPath, c.page(c.withPasskeys(c.confirmByPasskey)))
	detours.Get(identity.RenewPath, c.page(c.renewSession))
}

func (c *console) mountSettings(settings chi.Router) {
	settings.Use(c.Changes.Limit(c.page), body.Whole, c.pages.RequireSession(c.Guard))
	settings.Get("/console/settings", showSettings)
	settings.Get(accountPath, c.page(c.showAccount))
	settings.Get(passkeysPath+"/new", c.page(c.withPasskeys(c.confirmed(c.showNewPasskey))))
	settings.Post(passkeysPath+"/options", c.page(c.withPasskeys(c.confirmed(c.askForPasskey))))
	settings.Post(passkeysPath, c.page(c.withPasskeys(c.confirmed(c.registerPasskey))))
	settings.Get(passkeysPath+"/{id}/remove", c.page(c.withPasskeys(c.confirmed(c.showRemovePasskey))))
	settings.Post(passkeysPath+"/{id}/remove", c.page(c.withPasskeys(c.confirmed(c.removePasskey))))
	settings.Post(accountPath+"/sessions/{id}/end", c.page(c.endOneSession))
	settings.Post(accountPath+"/sessions/end-others", c.page(c.endOtherSessions))
	c.mountPeople(settings)
	settings.Get(projectsPath, c.page(permitted(tenants.ProjectsRead, c.showProjects)))
	settings.Post(projectsPath, c.page(permitted(tenants.ProjectsWrite, c.createProject)))
	settings.Get(auditPath, c.page(permitted(tenants.AuditRead, c.showAudit)))
	settings.Get(auditCSVPath, c.page(permitted(tenants.AuditRead, c.downloadAudit)))
	settings.Get(projectsPath+"/{id}", c.page(permitted(tenants.ProjectsWrite, c.showProject)))
	settings.Post(projectsPath+"/{id}", c.page(permitted(tenants.ProjectsWrite, c.renameProject)))
	settings.Get(organizationPath, c.page(permitted(tenants.OrganizationRead, c.showOrganization)))
	settings.Post(organizationPath, c.page(permitted(tenants.OrganizationWrite, c.renameOrganization)))
	settings.Get(serviceTokensPath, c.page(permitted(tenants.ServiceTokensRead, c.showServiceTokens)))
	settings.Get(serviceTokensPath+"/new", c.page(permitted(tenants.ServiceTokensWrite, c.confirmed(c.showNewServiceToken))))
	settings.Post(serviceTokensPath, c.page(permitted(tenants.ServiceTokensWrite, c.confirmed(c.createServiceToken))))
	settings.Get(serviceTokensPath+"/{id}/revoke", c.page(permitted(tenants.ServiceTokensWrite, c.confirmed(c.showRevokeServiceToken))))
	settings.Post(serviceTokensPath+"/{id}/revoke", c.page(permitted(tenants.ServiceTokensWrite, c.confirmed(c.revokeServiceToken))))
	settings.Get(securityPath, c.page(permitted(tenants.SecurityWrite, c.confirmed(c.showSecurity))))
	settings.Post(securityPath, c.page(permitted(tenants.SecurityWrite, c.confirmed(c.setSecurity))))
	c.mountAPIKeys(settings)
}

func (c *console) mountAPIKeys(settings chi.Router) {
	settings.Get(apiKeysPath, c.page(permitted(tenants.APIKeysRead, c.showAPIKeys)))
	settings.Get(apiKeysPath+"/new", c.page(permitted(tenants.APIKeysWrite, c.confirmed(c.showNewAPIKey))))
	settings.Post(apiKeysPath, c.page(permitted(tenants.APIKeysWrite, c.confirmed(c.createAPIKey))))
	settings.Get(apiKeysPath+"/{id}", c.page(permitted(tenants.APIKeysRead, c.showAPIKey)))
	settings.Get(apiKeysPath+"/{id}/first-event", c.page(permitted(tenants.APIKeysRead, c.awaitFirstEvent)))
	settings.Get(apiKeysPath+"/{id}/rotate", c.page(permitted(tenants.APIKeysWrite, c.confirmed(c.showRotateAPIKey))))
	settings.Post(apiKeysPath+"/{id}/rotate", c.page(permitted(tenants.APIKeysWrite, c.confirmed(c.rotateAPIKey))))
	settings.Get(apiKeysPath+"/{id}/edit", c.page(permitted(tenants.APIKeysWrite, c.showChangeAPIKey)))
	settings.Post(apiKeysPath+"/{id}/edit", c.page(permitted(tenants.APIKeysWrite, c.changeAPIKey)))
	settings.Get(apiKeysPath+"/{id}/revoke", c.page(permitted(tenants.APIKeysWrite, c.confirmed(c.showRevokeAPIKey))))
	settings.Post(apiKeysPath+"/{id}/revoke", c.page(permitted(tenants.APIKeysWrite, c.confirmed(c.revokeAPIKey))))
}

// mountCodes adds the pages of people who hold a code.
func (c *console) mountCodes(open chi.Router) {
	open.Get(WelcomePath, c.page(c.showWelcome))
	open.Post(WelcomePath, c.page(c.welcome))
	open.Get(joinPath, c.page(c.showJoin))
	open.Post(joinPath, c.page(c.join))
	open.Get(ResetPath, c.page(c.showReset))
	open.Post(ResetPath, c.page(c.reset))
}

// mountPeople adds the pages of members and invitations, and of one's own password.
func (c *console) mountPeople(settings chi.Router) {
	settings.Get(passwordPath, c.page(c.confirmed(c.showPassword)))
	settings.Post(passwordPath, c.page(c.confirmed(c.changePassword)))
	settings.Get(membersPath, c.page(permitted(tenants.MembersRead, c.showMembers)))
	manage := func(next handler) http.HandlerFunc {
		return c.page(permitted(tenants.MembersManage, c.confirmed(next)))
	}
	settings.Get(membersPath+"/{id}", manage(c.showMember))
	settings.Post(membersPath+"/{id}", manage(c.changeMember))
	settings.Get(membersPath+"/{id}/remove", manage(c.showRemoveMember))
	settings.Post(membersPath+"/{id}/remove", manage(c.removeMember))
	settings.Get(membersPath+"/{id}/reset", manage(c.showResetMember))
	settings.Post(membersPath+"/{id}/reset", manage(c.resetMember))
	settings.Get(invitationsPath, c.page(permitted(tenants.MembersInvite, c.showInvitations)))
	invite := func(next handler) http.HandlerFunc {
		return c.page(permitted(tenants.MembersInvite, c.confirmed(next)))
	}
	settings.Get(invitationsPath+"/new", invite(c.showInvite))
	settings.Post(invitationsPath, invite(c.invite))
	settings.Get(invitationsPath+"/{id}/resend", invite(c.showOn("invitation-resend", "Send an invitation again")))
	settings.Post(invitationsPath+"/{id}/resend", invite(c.resendInvitation))
	settings.Get(invitationsPath+"/{id}/revoke", invite(c.showOn("invitation-revoke", "Revoke an invitation")))
	settings.Post(invitationsPath+"/{id}/revoke", invite(c.revokeInvitation))
}

// noPage says that there is no such page; the address with a slash too many is the console itself.
func (c *console) noPage(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path == "/console/" {
		c.goHome(w, r)
		return nil
	}
	return httpapi.NotFound("page", r.URL.Path)
}

// goHome leads to where the member starts who has signed in; others to the sign-in.
func (c *console) goHome(w http.ResponseWriter, r *http.Request) {
	home := identity.SignInPath
	if member, err := c.Guard.Session(r); err == nil {
		home = ui.Home(member)
	}
	http.Redirect(w, r, home, http.StatusSeeOther)
}

// callerOf is the member who has signed in, as the registrar knows callers: one who reaches their own organization.
func callerOf(r *http.Request) tenants.Caller {
	principal := identity.FromContext(r.Context())
	return tenants.Caller{ID: principal.Member, Organization: principal.Organization}
}

func roleOf(r *http.Request) tenants.Role {
	return tenants.Role(identity.FromContext(r.Context()).Role())
}

// anonymous is a request of somebody who is not known yet.
func (c *console) anonymous(r *http.Request) registrar.Request {
	return registrar.Request{
		Address: httpapi.ClientAddress(r, c.TrustedProxies), Client: r.UserAgent(), ID: httpapi.RequestID(r.Context()),
		Devices: devicesOf(r),
	}
}

// requestOf is a request of a form, which carries a word of its own: so a form that is sent twice is carried out once.
func (c *console) requestOf(r *http.Request) registrar.Request {
	request := c.anonymous(r)
	request.Caller, request.Role = callerOf(r), roleOf(r)
	if word := r.PostForm.Get("form"); tenants.IsID(word) {
		request.IdempotencyKey = word
	}
	return request
}

// readForm reads a small form into r.PostForm.
func readForm(w http.ResponseWriter, r *http.Request) error {
	body, err := httpapi.ReadBody(w, r, maxForm)
	if err == nil {
		r.Body = io.NopCloser(bytes.NewReader(body))
		err = r.ParseForm()
	}
	if err != nil {
		return httpapi.NewProblem(http.StatusBadRequest, httpapi.CodeInvalidRequest,
			"The form could not be read. Go back, reload the page and send it again.")
	}
	return nil
}
