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

const invitationsPath = pages.MembersPath + "/invitations"

// invitationPages show, make, send again and revoke invitations.
type invitationPages struct {
	pages.Set
	invitations *Invitations
}

func (p invitationPages) mount(settings chi.Router) {
	const invite = tenants.MembersInvite
	settings.Get(invitationsPath, p.For(invite, p.showAll))
	settings.Get(invitationsPath+"/new", p.Confirmed(invite, p.showNew))
	settings.Post(invitationsPath, p.Confirmed(invite, p.invite))
	settings.Get(invitationsPath+"/{id}/resend", p.Confirmed(invite, p.showOn("invitation-resend", "Send an invitation again")))
	settings.Post(invitationsPath+"/{id}/resend", p.Confirmed(invite, p.resend))
	settings.Get(invitationsPath+"/{id}/revoke", p.Confirmed(invite, p.showOn("invitation-revoke", "Revoke an invitation")))
	settings.Post(invitationsPath+"/{id}/revoke", p.Confirmed(invite, p.revoke))
}

// shownInvitation is an invitation in a list.
type shownInvitation struct {
	tenants.Invitation
	State tenants.State
}

type invitationsPage struct {
	pages.Settings
	Invitations []shownInvitation
	Pager       ui.Pager
	Capacity    pages.ShownCapacity
}

func (p invitationPages) showAll(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	find := func(before query.Position, limit int) ([]tenants.Invitation, error) {
		return p.invitations.store.UnsettledInvitations(r.Context(), pg.Organization(pages.CallerOf(r).Organization), before, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfInvitation)
	if err != nil {
		return err
	}
	page := invitationsPage{Settings: shown, Pager: pager}
	if page.Capacity, err = pages.CapacityOf(r, p.invitations.Capacity); err != nil {
		return err
	}
	for _, invitation := range list {
		page.Invitations = append(page.Invitations, shownInvitation{invitation, invitation.State(p.Clock())})
	}
	p.Write(w, r, http.StatusOK, "invitations", ui.View{
		Title: "Invitations", Tabs: pages.Tabs(r, pages.MembersPath), Data: page,
		Flash: ui.TakeFlash(w, r, map[string]string{"invitation-revoked": "The invitation was revoked. Its code lets nobody in any more."}),
	})
	return nil
}

type invitePage struct {
	pages.Settings
	Fields []ui.Field
}

func (p invitationPages) showNew(w http.ResponseWriter, r *http.Request) error {
	return p.writeNew(w, r, http.StatusOK, NewInvitation{Role: tenants.Developer}, nil)
}

func (p invitationPages) writeNew(w http.ResponseWriter, r *http.Request, status int, wanted NewInvitation, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	email := ui.Field{
		Name: "email", Label: "E-mail", Type: "email", Value: wanted.Email, Fault: pages.FaultOf(fault, "email"), Autocomplete: "off",
		Required: true, Hint: "Anyone who joins has to type this address.",
	}
	p.Write(w, r, status, "invite", ui.View{
		Title: "Invite somebody", Tabs: pages.Tabs(r, pages.MembersPath),
		Data: invitePage{shown, []ui.Field{email, roleField(shown.Role, wanted.Role, fault)}},
	})
	return nil
}

func (p invitationPages) invite(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	wanted := NewInvitation{
		Organization: pages.CallerOf(r).Organization, Email: r.PostForm.Get("email"), Role: tenants.Role(r.PostForm.Get("role")),
	}
	if err := pages.Need(r, tenants.InvitePermission(wanted.Role)); err != nil {
		return err
	}
	invitation, code, err := p.invitations.Invite(r.Context(), p.RequestOf(r), wanted)
	switch {
	case pages.IsInvalid(err):
		return p.writeNew(w, r, http.StatusUnprocessableEntity, wanted, err)
	case errors.Is(err, tenants.ErrShownOnce):
		return errShownOnce()
	case err != nil:
		return pages.ProblemOf(err, "organization", wanted.Organization)
	}
	p.writeInvited(w, r, invitation, code)
	return nil
}

func (p invitationPages) writeInvited(w http.ResponseWriter, r *http.Request, invitation tenants.Invitation, code tenants.Secret) {
	writeIssuedCode(p.Set, w, r, "Pass on the invitation", JoinPath, code, issuedCode{
		For: invitation.Email, Does: "with that address, anyone who opens it joins as " + string(invitation.Role),
		Expires: invitation.ExpiresAt, Back: invitationsPath,
	})
}

type invitationPage struct {
	pages.Settings
	Invitation tenants.Invitation
}

// found is the one in the address, if the reader may manage it.
func (p invitationPages) found(r *http.Request) (tenants.Invitation, error) {
	id := chi.URLParam(r, "id")
	if !tenants.IsID(id) {
		return tenants.Invitation{}, httpapi.NotFound("invitation", id)
	}
	invitation, err := p.invitations.store.Invitation(r.Context(), pg.Organization(pages.CallerOf(r).Organization), id)
	if err != nil {
		return tenants.Invitation{}, pages.ProblemOf(err, "invitation", id)
	}
	return invitation, pages.Need(r, tenants.InvitePermission(invitation.Role))
}

// showOn shows a page about an invitation.
func (p invitationPages) showOn(page, title string) pages.Handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		invitation, err := p.found(r)
		if err != nil {
			return err
		}
		shown, err := p.Settings(r)
		if err != nil {
			return err
		}
		p.Write(w, r, http.StatusOK, page, ui.View{Title: title, Tabs: pages.Tabs(r, pages.MembersPath), Data: invitationPage{shown, invitation}})
		return nil
	}
}

func (p invitationPages) resend(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	invitation, err := p.found(r)
	if err != nil {
		return err
	}
	invitation, code, err := p.invitations.Resend(r.Context(), p.RequestOf(r), invitation.ID)
	if err != nil {
		return pages.ProblemOf(err, "invitation", chi.URLParam(r, "id"))
	}
	p.writeInvited(w, r, invitation, code)
	return nil
}

func (p invitationPages) revoke(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	invitation, err := p.found(r)
	if err != nil {
		return err
	}
	if _, err := p.invitations.Revoke(r.Context(), p.RequestOf(r), invitation.ID); err != nil {
		return pages.ProblemOf(err, "invitation", invitation.ID)
	}
	return pages.Done(w, r, "invitation-revoked", invitationsPath)
}
