package console

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
	"github.com/weirlog/weir/tenants/internal/registrar"
)

const invitationsPath = pages.MembersPath + "/invitations"

// shownInvitation is an invitation as a list shows it.
type shownInvitation struct {
	tenants.Invitation
	State tenants.State
}

type invitationsPage struct {
	pages.Settings
	Invitations []shownInvitation
	Pager       ui.Pager
	Room        pages.ShownRoom
}

func (c *console) showInvitations(w http.ResponseWriter, r *http.Request) error {
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	before, err := pages.PlaceOf(r)
	if err != nil {
		return err
	}
	found, err := c.Views.UnsettledInvitations(r.Context(), pg.Organization(pages.CallerOf(r).Organization), before, pages.PageSize+1)
	if err != nil {
		return err
	}
	list := httpapi.NewList(r, found, pages.PageSize, func(last tenants.Invitation) any {
		return query.Position{At: last.MadeAt, ID: last.ID}
	})
	page := invitationsPage{Settings: shown, Pager: ui.NewPager(r, list.NextCursor)}
	if page.Room, err = c.room(r, tenants.CountInvitations); err != nil {
		return err
	}
	for _, invitation := range list.Items {
		page.Invitations = append(page.Invitations, shownInvitation{invitation, invitation.State(c.Clock())})
	}
	c.Write(w, r, http.StatusOK, "invitations", ui.View{
		Title: "Invitations", Tabs: pages.Tabs(r, pages.MembersPath), Data: page,
		Flash: ui.TakeFlash(w, r, map[string]string{"invitation-revoked": "The invitation was revoked. Its code lets nobody in any more."}),
	})
	return nil
}

type invitePage struct {
	pages.Settings
	Fields []ui.Field
}

func (c *console) showInvite(w http.ResponseWriter, r *http.Request) error {
	return c.writeInvite(w, r, http.StatusOK, registrar.NewInvitation{Role: tenants.Developer}, nil)
}

func (c *console) writeInvite(w http.ResponseWriter, r *http.Request, status int, wanted registrar.NewInvitation, fault error) error {
	shown, err := c.Settings(r)
	if err != nil {
		return err
	}
	email := ui.Field{
		Name: "email", Label: "E-mail", Type: "email", Value: wanted.Email, Fault: pages.FaultOf(fault, "email"), Autocomplete: "off",
		Required: true, Hint: "Whoever joins has to type this address.",
	}
	c.Write(w, r, status, "invite", ui.View{
		Title: "Invite somebody", Tabs: pages.Tabs(r, pages.MembersPath),
		Data: invitePage{shown, []ui.Field{email, roleField(shown.Role, wanted.Role, fault)}},
	})
	return nil
}

func (c *console) invite(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	wanted := registrar.NewInvitation{
		Organization: pages.CallerOf(r).Organization, Email: r.PostForm.Get("email"), Role: tenants.Role(r.PostForm.Get("role")),
	}
	if err := pages.Need(r, tenants.InvitingTo(wanted.Role)); err != nil {
		return err
	}
	invitation, code, err := c.Registrar.Invite(r.Context(), c.requestOf(r), wanted)
	switch {
	case pages.IsInvalid(err):
		return c.writeInvite(w, r, http.StatusUnprocessableEntity, wanted, err)
	case errors.Is(err, tenants.ErrShownOnce):
		return errShownOnce()
	case err != nil:
		return problemOf(err, "organization", wanted.Organization)
	}
	c.writeInvited(w, r, invitation, code)
	return nil
}

func (c *console) writeInvited(w http.ResponseWriter, r *http.Request, invitation tenants.Invitation, code tenants.Secret) {
	c.writeHandedOut(w, r, "Pass on the invitation", joinPath, code, handedOut{
		For: invitation.Email, Does: "with that address, whoever opens it joins as " + string(invitation.Role),
		Expires: invitation.ExpiresAt, Back: invitationsPath,
	})
}

type invitationPage struct {
	pages.Settings
	Invitation tenants.Invitation
}

// invitation is the one that the address names, if the reader may see to it.
func (c *console) invitation(r *http.Request) (tenants.Invitation, error) {
	id := chi.URLParam(r, "id")
	if !tenants.IsID(id) {
		return tenants.Invitation{}, httpapi.NotFound("invitation", id)
	}
	invitation, err := c.Views.Invitation(r.Context(), pg.Organization(pages.CallerOf(r).Organization), id)
	if err != nil {
		return tenants.Invitation{}, problemOf(err, "invitation", id)
	}
	return invitation, pages.Need(r, tenants.InvitingTo(invitation.Role))
}

// showOn shows a page about an invitation.
func (c *console) showOn(page, title string) pages.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		invitation, err := c.invitation(r)
		if err != nil {
			return err
		}
		shown, err := c.Settings(r)
		if err != nil {
			return err
		}
		c.Write(w, r, http.StatusOK, page, ui.View{Title: title, Tabs: pages.Tabs(r, pages.MembersPath), Data: invitationPage{shown, invitation}})
		return nil
	}
}

func (c *console) resendInvitation(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	invitation, err := c.invitation(r)
	if err != nil {
		return err
	}
	invitation, code, err := c.Registrar.ResendInvitation(r.Context(), c.requestOf(r), invitation.ID)
	if err != nil {
		return problemOf(err, "invitation", chi.URLParam(r, "id"))
	}
	c.writeInvited(w, r, invitation, code)
	return nil
}

func (c *console) revokeInvitation(w http.ResponseWriter, r *http.Request) error {
	if err := pages.ReadForm(w, r); err != nil {
		return err
	}
	invitation, err := c.invitation(r)
	if err != nil {
		return err
	}
	if _, err := c.Registrar.RevokeInvitation(r.Context(), c.requestOf(r), invitation.ID); err != nil {
		return problemOf(err, "invitation", invitation.ID)
	}
	ui.SetFlash(w, "invitation-revoked")
	http.Redirect(w, r, invitationsPath, http.StatusSeeOther)
	return nil
}
