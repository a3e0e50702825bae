package people

import (
	"embed"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/tenants"
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
	const manage, invite = tenants.MembersManage, tenants.MembersInvite
	settings.Get(pages.MembersPath, p.For(tenants.MembersRead, p.showMembers))
	settings.Get(pages.MembersPath+"/{id}", p.Confirmed(manage, p.showMember))
	settings.Post(pages.MembersPath+"/{id}", p.Confirmed(manage, p.changeMember))
	settings.Get(pages.MembersPath+"/{id}/remove", p.Confirmed(manage, p.showRemoveMember))
	settings.Post(pages.MembersPath+"/{id}/remove", p.Confirmed(manage, p.removeMember))
	settings.Get(pages.MembersPath+"/{id}/reset", p.Confirmed(manage, p.showResetMember))
	settings.Post(pages.MembersPath+"/{id}/reset", p.Confirmed(manage, p.resetMember))
	settings.Get(mailsPath, p.For(tenants.MailsReceive, p.showMails))
	settings.Post(mailsPath, p.For(tenants.MailsReceive, p.chooseMails))
	settings.Get(invitationsPath, p.For(invite, p.showInvitations))
	settings.Get(invitationsPath+"/new", p.Confirmed(invite, p.showInvite))
	settings.Post(invitationsPath, p.Confirmed(invite, p.invite))
	settings.Get(invitationsPath+"/{id}/resend", p.Confirmed(invite, p.showOn("invitation-resend", "Send an invitation again")))
	settings.Post(invitationsPath+"/{id}/resend", p.Confirmed(invite, p.resendInvitation))
	settings.Get(invitationsPath+"/{id}/revoke", p.Confirmed(invite, p.showOn("invitation-revoke", "Revoke an invitation")))
	settings.Post(invitationsPath+"/{id}/revoke", p.Confirmed(invite, p.revokeInvitation))
}

// MountCodes adds the pages for holders of a code who can't sign in yet.
func (p Pages) MountCodes(router chi.Router) {
	open := router.With(p.Protect, p.RequireReady(p.Guard))
	open.Get(WelcomePath, p.Page(p.showWelcome))
	open.Post(WelcomePath, p.Page(p.welcome))
	open.Get(joinPath, p.Page(p.showJoin))
	open.Post(joinPath, p.Page(p.join))
	open.Get(ResetPath, p.Page(p.showReset))
	open.Post(ResetPath, p.Page(p.reset))
}
