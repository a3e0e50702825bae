package console

import (
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
	"github.com/weirlog/weir/tenants/internal/registrar"
)

type membersPage struct {
	pages.Settings
	Members []tenants.Member
	Pager   ui.Pager
	Room    pages.ShownRoom
}

func (c *console) showMembers(w http.ResponseWriter, r *http.Request) error {
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	after, err := pages.PlaceOf(r)
	if err != nil {
		return err
	}
	organization := pages.CallerOf(r).Organization
	found, err := c.Views.Members(r.Context(), pg.Organization(organization), pg.Organization(organization), after, pages.PageSize+1)
	if err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pages.PageSize, func(last tenants.Member) any {
		return query.Position{At: last.AddedAt, ID: last.ID}
	})
	room, err := c.room(r, tenants.CountMembers)
	if err != nil {
		return err
	}
	c.Write(w, r, http.StatusOK, "members", ui.View{
		Title: "Members", Tabs: pages.Tabs(r, pages.MembersPath), Data: membersPage{shown, list.Items, ui.NewPager(r, list.NextCursor), room},
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

// Own tells whether the reader looks at themselves.
func (p memberPage) Own() bool { return p.Found.ID == p.Member.ID }

// found is the member that the address names, if the reader may manage them.
func (c *console) found(r *http.Request) (tenants.Member, error) {
	id := chi.URLParam(r, "id")
	if !tenants.IsID(id) {
		return tenants.Member{}, httpapi.NotFound("member", id)
	}
	member, err := c.Views.Member(r.Context(), pg.Organization(pages.CallerOf(r).Organization), id)
	if err != nil {
		return tenants.Member{}, problemOf(err, "member", id)
	}
	return member, pages.Need(r, tenants.Managing(member.Role))
}

func (c *console) showMember(w http.ResponseWriter, r *http.Request) error {
	return c.writeMember(w, r, http.StatusOK, nil)
}

func (c *console) writeMember(w http.ResponseWriter, r *http.Request, status int, fault error) error {
	member, err := c.found(r)
	if err != nil {
		return err
	}
	return c.writeOn(w, r, status, "member", "Change a member", member, roleField(pages.RoleOf(r), member.Role, fault))
}

// writeOn shows a page about a member.
func (c *console) writeOn(w http.ResponseWriter, r *http.Request, status int, page, title string, member tenants.Member, field ui.Field) error {
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	c.Write(w, r, status, page, ui.View{Title: title, Tabs: pages.Tabs(r, pages.MembersPath), Data: memberPage{shown, member, field}})
	return nil
}

// roleField lets somebody in one role choose among those that they may give.
func roleField(of, now tenants.Role, fault error) ui.Field {
	var choices [][2]string
	for _, role := range tenants.Roles() {
		if of.MayManage(role) {
			choices = append(choices, [2]string{string(role), roleWords(role)})
		}
	}
	return ui.Field{Name: "role", Label: "Role", Fault: pages.FaultOf(fault, "role"), Required: true, Choices: ui.Choose(string(now), choices...)}
}

// roleWords say what a role may do.
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

func (c *console) changeMember(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	member, err := c.found(r)
	if err != nil {
		return err
	}
	role := tenants.Role(r.PostForm.Get("role"))
	if err := pages.Need(r, tenants.Managing(role)); err != nil {
		return err
	}
	_, err = c.Registrar.ChangeRole(r.Context(), c.requestOf(r), member.ID, role)
	if errors.Is(err, tenants.ErrLastOwner) {
		err = tenants.Invalid{{Field: "role", Detail: "This is the only owner.", Fix: "Make somebody else owner first."}}
	}
	if pages.IsInvalid(err) {
		return c.writeMember(w, r, http.StatusUnprocessableEntity, err)
	}
	if err != nil {
		return problemOf(err, "member", member.ID)
	}
	ui.SetFlash(w, "role-changed")
	http.Redirect(w, r, pages.MembersPath, http.StatusSeeOther)
	return nil
}

func (c *console) showRemoveMember(w http.ResponseWriter, r *http.Request) error {
	member, err := c.found(r)
	if err != nil {
		return err
	}
	return c.writeOn(w, r, http.StatusOK, "member-remove", "Remove a member", member, ui.Field{})
}

func (c *console) removeMember(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	member, err := c.found(r)
	if err != nil {
		return err
	}
	if _, err := c.Registrar.RemoveMember(r.Context(), c.requestOf(r), member.ID); err != nil {
		return problemOf(err, "member", member.ID)
	}
	ui.SetFlash(w, "member-removed")
	http.Redirect(w, r, pages.MembersPath, http.StatusSeeOther)
	return nil
}

func (c *console) showResetMember(w http.ResponseWriter, r *http.Request) error {
	member, err := c.found(r)
	if err != nil {
		return err
	}
	return c.writeOn(w, r, http.StatusOK, "member-reset", "Let a member set a new password", member, ui.Field{})
}

func (c *console) resetMember(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	member, err := c.found(r)
	if err != nil {
		return err
	}
	member, code, err := c.Registrar.IssueResetCode(r.Context(), c.requestOf(r), member.ID)
	if err != nil {
		return problemOf(err, "member", chi.URLParam(r, "id"))
	}
	c.writeHandedOut(w, r, "Pass on the link for a new password", ResetPath, code, handedOut{
		For: member.Name + ", " + member.Email, Does: "whoever opens it sets the password and can then sign in as that member",
		Expires: member.Reset.ExpiresAt, Back: pages.MembersPath,
	})
	return nil
}

const passwordPath = pages.AccountPath + "/password"

type passwordPage struct {
	Email  string // for password managers
	Fields []ui.Field
}

func (c *console) showPassword(w http.ResponseWriter, r *http.Request) error {
	off, err := c.Registrar.PasswordsOff(r.Context(), pages.CallerOf(r).Organization)
	if err == nil && off {
		err = registrar.ErrPasswordsOff
	}
	if err != nil {
		return problemOf(err, "password", "")
	}
	return c.writePassword(w, r, http.StatusOK, nil, nil)
}

func (c *console) writePassword(w http.ResponseWriter, r *http.Request, status int, fault error, flash *ui.Flash) error {
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	page := passwordPage{Email: shown.Member.Email, Fields: []ui.Field{
		{Name: "current_password", Label: "Current password", Type: "password", Fault: pages.FaultOf(fault, "current_password"),
			Autocomplete: "current-password", Required: true},
		pages.NewPassword(fault),
	}}
	page.Fields[1].Label = "New password"
	c.Write(w, r, status, "password", ui.View{Title: "Change your password", Tabs: pages.Tabs(r, pages.AccountPath), Flash: flash, Data: page})
	return nil
}

func (c *console) changePassword(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	if wait := c.limitMember(r); wait > 0 {
		return c.writePassword(w, r, http.StatusTooManyRequests, nil, pages.TooMany(w, r, wait))
	}
	before, password := tenants.Password(r.PostForm.Get("current_password")), tenants.Password(r.PostForm.Get("password"))
	err := c.Registrar.ChangePassword(r.Context(), c.requestOf(r), identity.FromContext(r.Context()).ID, before, password)
	if pages.IsBusy(err) {
		return c.writePassword(w, r, http.StatusTooManyRequests, nil, pages.Busy(w, r))
	}
	if errors.Is(err, registrar.ErrPassword) {
		err = tenants.Invalid{{Field: "current_password", Detail: "This is not your password.", Fix: "Type it again, or ask an owner or admin for a reset."}}
	}
	if pages.IsInvalid(err) {
		return c.writePassword(w, r, http.StatusUnprocessableEntity, err, nil)
	}
	if errors.Is(err, registrar.ErrPasswordsOff) {
		return problemOf(err, "password", "")
	}
	if err != nil {
		return ended(err)
	}
	ui.SetFlash(w, "password-changed")
	http.Redirect(w, r, pages.AccountPath, http.StatusSeeOther)
	return nil
}
