package people

import (
	"embed"
	"errors"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
)

type membersPage struct {
	pages.Settings
	Members  []tenants.Member
	Pager    ui.Pager
	Capacity pages.ShownCapacity
}

func (p Pages) showMembers(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	organization := pg.Organization(pages.CallerOf(r).Organization)
	find := func(after query.Position, limit int) ([]tenants.Member, error) {
		return p.Members.store.Members(r.Context(), organization, organization, after, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfMember)
	if err != nil {
		return err
	}
	capacity, err := pages.CapacityOf(r, p.Members.Capacity)
	if err != nil {
		return err
	}
	p.Write(w, r, http.StatusOK, "members", ui.View{
		Title: "Members", Tabs: pages.Tabs(r, pages.MembersPath), Data: membersPage{shown, list, pager, capacity},
		Flash: ui.TakeFlash(w, r, map[string]string{
			"role-changed":   "The role was changed. It is in force wherever the member is signed in.",
			"member-removed": "The member was removed, and is signed out everywhere.",
		}),
	})
	return nil
}

type memberPage struct {
	pages.Settings
	Found tenants.Member
	Field ui.Field
}

// Own reports whether the reader is the member.
func (p memberPage) Own() bool { return p.Found.ID == p.Member.ID }

// found is the member in the address, if the reader may manage them.
func (p Pages) found(r *http.Request) (tenants.Member, error) {
	id := chi.URLParam(r, "id")
	if !tenants.IsID(id) {
		return tenants.Member{}, httpapi.NotFound("member", id)
	}
	member, err := p.Members.store.Member(r.Context(), pg.Organization(pages.CallerOf(r).Organization), id)
	if err != nil {
		return tenants.Member{}, pages.ProblemOf(err, "member", id)
	}
	return member, pages.Need(r, tenants.ManagePermission(member.Role))
}

func (p Pages) showMember(w http.ResponseWriter, r *http.Request) error {
	return p.writeMember(w, r, http.StatusOK, nil)
}

func (p Pages) writeMember(w http.ResponseWriter, r *http.Request, status int, fault error) error {
	member, err := p.found(r)
	if err != nil {
		return err
	}
	return p.writeOn(w, r, status, "member", "Change a member", member, roleField(pages.RoleOf(r), member.Role, fault))
}

// writeOn shows a page about a member.
func (p Pages) writeOn(w http.ResponseWriter, r *http.Request, status int, page, title string, member tenants.Member, field ui.Field) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, page, ui.View{Title: title, Tabs: pages.Tabs(r, pages.MembersPath), Data: memberPage{shown, member, field}})
	return nil
}

// roleField is the choice of roles that a role may give.
func roleField(of, now tenants.Role, fault error) ui.Field {
	var choices [][2]string
	for _, role := range tenants.Roles() {
		if of.MayManage(role) {
			choices = append(choices, [2]string{string(role), roleWords(role)})
		}
	}
	return ui.Field{Name: "role", Label: "Role", Fault: pages.FaultOf(fault, "role"), Required: true, Choices: ui.NewChoices(string(now), choices...)}
}

// roleWords are what a role may do.
func roleWords(role tenants.Role) string {
	switch role {
	case tenants.Owner:
		return "Owner: everything"
	case tenants.Admin:
		return "Admin: everything but owners"
	case tenants.Developer:
		return "Developer: projects, and keys of staging and dev"
	case tenants.Viewer:
		return "Viewer: sees what there is"
	case tenants.Billing:
		return "Billing: sees what is used"
	}
	return string(role)
}

func (p Pages) changeMember(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	member, err := p.found(r)
	if err != nil {
		return err
	}
	role := tenants.Role(r.PostForm.Get("role"))
	if err := pages.Need(r, tenants.ManagePermission(role)); err != nil {
		return err
	}
	_, err = p.Members.ChangeRole(r.Context(), p.RequestOf(r), member.ID, role)
	if errors.Is(err, tenants.ErrLastOwner) {
		err = tenants.Invalid{{Field: "role", Detail: "This is the only owner.", Fix: "Make somebody else owner first."}}
	}
	if pages.IsInvalid(err) {
		return p.writeMember(w, r, http.StatusUnprocessableEntity, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "member", member.ID)
	}
	return pages.Done(w, r, "role-changed", pages.MembersPath)
}

func (p Pages) showRemoveMember(w http.ResponseWriter, r *http.Request) error {
	member, err := p.found(r)
	if err != nil {
		return err
	}
	return p.writeOn(w, r, http.StatusOK, "member-remove", "Remove a member", member, ui.Field{})
}

func (p Pages) removeMember(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	member, err := p.found(r)
	if err != nil {
		return err
	}
	if _, err := p.Members.Remove(r.Context(), p.RequestOf(r), member.ID); err != nil {
		return pages.ProblemOf(err, "member", member.ID)
	}
	return pages.Done(w, r, "member-removed", pages.MembersPath)
}

func (p Pages) showResetMember(w http.ResponseWriter, r *http.Request) error {
	member, err := p.found(r)
	if err != nil {
		return err
	}
	return p.writeOn(w, r, http.StatusOK, "member-reset", "Let a member set a new password", member, ui.Field{})
}

func (p Pages) resetMember(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	member, err := p.found(r)
	if err != nil {
		return err
	}
	member, code, err := p.Codes.IssueReset(r.Context(), p.RequestOf(r), member.ID)
	if err != nil {
		return pages.ProblemOf(err, "member", chi.URLParam(r, "id"))
	}
	p.writeIssuedCode(w, r, "Pass on the link for a new password", ResetPath, code, issuedCode{
		For: member.Name + ", " + member.Email, Does: "anyone who opens it sets the password and can then sign in as that member",
		Expires: member.Reset.ExpiresAt, Back: pages.MembersPath,
	})
	return nil
}

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
