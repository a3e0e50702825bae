package people

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

// memberPages show, change and remove members.
type memberPages struct {
	pages.Set
	members *Service
	codes   *Codes
}

func (p memberPages) mount(settings chi.Router) {
	const manage = tenants.MembersManage
	settings.Get(pages.MembersPath, p.For(tenants.MembersRead, p.showAll))
	settings.Get(pages.MembersPath+"/{id}", p.Confirmed(manage, p.show))
	settings.Post(pages.MembersPath+"/{id}", p.Confirmed(manage, p.change))
	settings.Get(pages.MembersPath+"/{id}/remove", p.Confirmed(manage, p.showRemove))
	settings.Post(pages.MembersPath+"/{id}/remove", p.Confirmed(manage, p.remove))
	settings.Get(pages.MembersPath+"/{id}/reset", p.Confirmed(manage, p.showReset))
	settings.Post(pages.MembersPath+"/{id}/reset", p.Confirmed(manage, p.reset))
}

type membersPage struct {
	pages.Settings
	Members  []tenants.Member
	Pager    ui.Pager
	Capacity pages.ShownCapacity
}

func (p memberPages) showAll(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	organization := pg.Organization(pages.CallerOf(r).Organization)
	find := func(after query.Position, limit int) ([]tenants.Member, error) {
		return p.members.store.Members(r.Context(), organization, organization, after, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfMember)
	if err != nil {
		return err
	}
	capacity, err := pages.CapacityOf(r, p.members.Capacity)
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
func (p memberPages) found(r *http.Request) (tenants.Member, error) {
	id := chi.URLParam(r, "id")
	if !tenants.IsID(id) {
		return tenants.Member{}, httpapi.NotFound("member", id)
	}
	member, err := p.members.store.Member(r.Context(), pg.Organization(pages.CallerOf(r).Organization), id)
	if err != nil {
		return tenants.Member{}, pages.ProblemOf(err, "member", id)
	}
	return member, pages.Need(r, tenants.ManagePermission(member.Role))
}

func (p memberPages) show(w http.ResponseWriter, r *http.Request) error {
	return p.write(w, r, http.StatusOK, nil)
}

func (p memberPages) write(w http.ResponseWriter, r *http.Request, status int, fault error) error {
	member, err := p.found(r)
	if err != nil {
		return err
	}
	return p.writeOn(w, r, status, "member", "Change a member", member, roleField(pages.RoleOf(r), member.Role, fault))
}

// writeOn shows a page about a member.
func (p memberPages) writeOn(w http.ResponseWriter, r *http.Request, status int, page, title string, member tenants.Member, field ui.Field) error {
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

func (p memberPages) change(w http.ResponseWriter, r *http.Request) error {
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
	_, err = p.members.ChangeRole(r.Context(), p.RequestOf(r), member.ID, role)
	if errors.Is(err, tenants.ErrLastOwner) {
		err = tenants.Invalid{{Field: "role", Detail: "This is the only owner.", Fix: "Make somebody else owner first."}}
	}
	if pages.IsInvalid(err) {
		return p.write(w, r, http.StatusUnprocessableEntity, err)
	}
	if err != nil {
		return pages.ProblemOf(err, "member", member.ID)
	}
	return pages.Done(w, r, "role-changed", pages.MembersPath)
}

func (p memberPages) showRemove(w http.ResponseWriter, r *http.Request) error {
	member, err := p.found(r)
	if err != nil {
		return err
	}
	return p.writeOn(w, r, http.StatusOK, "member-remove", "Remove a member", member, ui.Field{})
}

func (p memberPages) remove(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	member, err := p.found(r)
	if err != nil {
		return err
	}
	if _, err := p.members.Remove(r.Context(), p.RequestOf(r), member.ID); err != nil {
		return pages.ProblemOf(err, "member", member.ID)
	}
	return pages.Done(w, r, "member-removed", pages.MembersPath)
}

func (p memberPages) showReset(w http.ResponseWriter, r *http.Request) error {
	member, err := p.found(r)
	if err != nil {
		return err
	}
	return p.writeOn(w, r, http.StatusOK, "member-reset", "Let a member set a new password", member, ui.Field{})
}

func (p memberPages) reset(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	member, err := p.found(r)
	if err != nil {
		return err
	}
	member, code, err := p.codes.IssueReset(r.Context(), p.RequestOf(r), member.ID)
	if err != nil {
		return pages.ProblemOf(err, "member", chi.URLParam(r, "id"))
	}
	writeIssuedCode(p.Set, w, r, "Pass on the link for a new password", ResetPath, code, issuedCode{
		For: member.Name + ", " + member.Email, Does: "anyone who opens it sets the password and can then sign in as that member",
		Expires: member.Reset.ExpiresAt, Back: pages.MembersPath,
	})
	return nil
}
