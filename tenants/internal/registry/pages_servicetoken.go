package registry

import (
	"errors"
	"net/http"
	"slices"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
	"github.com/weirlog/weir/tenants/internal/query"
)

// tokenPages show, issue and revoke service tokens.
type tokenPages struct {
	pages.Set
	tokens *Tokens
}

func (p tokenPages) mount(settings chi.Router) {
	settings.Get(pages.ServiceTokensPath, p.For(tenants.ServiceTokensRead, p.showAll))
	settings.Get(pages.ServiceTokensPath+"/new", p.Confirmed(tenants.ServiceTokensWrite, p.showNew))
	settings.Post(pages.ServiceTokensPath, p.Confirmed(tenants.ServiceTokensWrite, p.create))
	settings.Get(pages.ServiceTokensPath+"/{id}/revoke", p.Confirmed(tenants.ServiceTokensWrite, p.showRevoke))
	settings.Post(pages.ServiceTokensPath+"/{id}/revoke", p.Confirmed(tenants.ServiceTokensWrite, p.revoke()))
}

// shownToken is a service token in a list.
type shownToken struct {
	tenants.ServiceToken
	Shown string // the stored part of the token
	State tenants.State
}

func showToken(token tenants.ServiceToken) shownToken {
	return shownToken{
		ServiceToken: token, State: token.State(),
		Shown: tenants.ServiceTokenPrefix + token.Digest.First + "…" + token.Digest.Last,
	}
}

type serviceTokensPage struct {
	pages.Settings
	Tokens   []shownToken
	Pager    ui.Pager
	Capacity pages.ShownCapacity
}

func (p tokenPages) showAll(w http.ResponseWriter, r *http.Request) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	caller := pages.CallerOf(r)
	find := func(after query.Position, limit int) ([]tenants.ServiceToken, error) {
		return p.tokens.List(r.Context(), caller, caller.Organization, after, limit)
	}
	list, pager, err := pages.ListOf(r, find, placeOfServiceToken)
	if err != nil {
		return err
	}
	page := serviceTokensPage{Settings: shown, Pager: pager}
	if page.Capacity, err = pages.CapacityOf(r, p.tokens.Capacity); err != nil {
		return err
	}
	for _, token := range list {
		page.Tokens = append(page.Tokens, showToken(token))
	}
	p.Write(w, r, http.StatusOK, "service-tokens", ui.View{
		Title: "Service tokens", Tabs: pages.Tabs(r, pages.ServiceTokensPath), Data: page,
		Flash: ui.TakeFlash(w, r, map[string]string{"token-revoked": "The service token was revoked. It works nowhere any more."}),
	})
	return nil
}

// scopeTexts are what the scopes that members can grant allow.
var scopeTexts = map[string]string{
	tenants.ScopeBillingRead:  "reads balances, statements and usage",
	tenants.ScopeTenantsAdmin: "does what an admin may do, over the API: projects, keys, tokens, invitations, and members other than owners",
}

type newTokenPage struct {
	pages.Settings
	Name   ui.Field
	Scopes []ui.Choice
	Fault  string // of the scopes
}

func (p tokenPages) showNew(w http.ResponseWriter, r *http.Request) error {
	return p.writeNew(w, r, http.StatusOK, NewToken{}, nil)
}

func (p tokenPages) writeNew(w http.ResponseWriter, r *http.Request, status int, wanted NewToken, fault error) error {
	shown, err := p.Settings(r)
	if err != nil {
		return err
	}
	page := newTokenPage{Settings: shown, Name: ui.Field{
		Name: "name", Label: "Name", Value: wanted.Name, Fault: pages.FaultOf(fault, "name"), MaxLength: 200, Required: true, Autocomplete: "off",
		Hint: "The service that will hold the token, such as invoicing.",
	}}
	if pages.FaultOf(fault, "scopes") != "" {
		page.Fault = "Choose at least one."
	}
	for _, scope := range shown.Role.GrantableScopes() {
		page.Scopes = append(page.Scopes, ui.Choice{Value: scope, Text: scopeTexts[scope], Selected: slices.Contains(wanted.Scopes, scope)})
	}
	p.Write(w, r, status, "service-token-new", ui.View{
		Title: "Create a service token", Tabs: pages.Tabs(r, pages.ServiceTokensPath), Data: page,
	})
	return nil
}

type createdTokenPage struct {
	Token shownToken
	Full  ui.Code // the token itself, shown only on this page
}

// create issues a token and shows it in the
// response. A member grants no scope beyond their own role.
func (p tokenPages) create(w http.ResponseWriter, r *http.Request) error {
	if err := ui.ReadForm(w, r); err != nil {
		return err
	}
	request := p.RequestOf(r)
	request.Caller.Scopes = request.Role.GrantableScopes()
	wanted := NewToken{
		Organization: request.Caller.Organization, Name: r.PostForm.Get("name"), Scopes: r.PostForm["scopes"],
	}
	token, secret, err := p.tokens.Issue(r.Context(), request, wanted)
	switch {
	case pages.IsInvalid(err):
		return p.writeNew(w, r, http.StatusUnprocessableEntity, wanted, err)
	case errors.Is(err, tenants.ErrForbidden):
		return httpapi.NewProblem(http.StatusForbidden, httpapi.CodeForbidden,
			"A token may do no more than its creator. Open the form again and choose among the scopes there, or ask an owner.")
	case errors.Is(err, tenants.ErrShownOnce):
		return httpapi.NewProblem(http.StatusConflict, "secret_shown_once",
			"This token was created already, and was shown once. If you did not save it, revoke it and create another.")
	case err != nil:
		return pages.ProblemOf(err, "organization", wanted.Organization)
	}
	p.Write(w, r, http.StatusCreated, "service-token-created", ui.View{
		Title: "Save your new service token now", Tabs: pages.Tabs(r, pages.ServiceTokensPath),
		Data: createdTokenPage{
			Token: showToken(token),
			Full:  ui.Code{ID: "secret", Label: "Your token", Text: secret.Reveal(), Copy: "Copy token", Secret: true},
		},
	})
	return nil
}

type revokeTokenPage struct {
	Token  shownToken
	Reason ui.Field
}

func (p tokenPages) showRevoke(w http.ResponseWriter, r *http.Request) error {
	return p.writeRevoke(w, r, http.StatusOK, "", nil)
}

func (p tokenPages) writeRevoke(w http.ResponseWriter, r *http.Request, status int, reason string, fault error) error {
	token, err := p.toRevoke(r)
	if err != nil {
		return err
	}
	p.Write(w, r, status, "service-token-revoke", ui.View{
		Title: "Revoke a service token", Tabs: pages.Tabs(r, pages.ServiceTokensPath),
		Data: revokeTokenPage{showToken(token), pages.ReasonField(reason, fault)},
	})
	return nil
}

// toRevoke is the token in the address, unless it is the installation's.
func (p tokenPages) toRevoke(r *http.Request) (tenants.ServiceToken, error) {
	id := chi.URLParam(r, "id")
	token, err := p.tokens.Token(r.Context(), pages.CallerOf(r), id)
	return token, pages.ProblemOf(err, "service token", id)
}

// id is the id of the token in the address.
func (p tokenPages) id(r *http.Request) (string, error) {
	token, err := p.toRevoke(r)
	return token.ID, err
}

func (p tokenPages) revoke() pages.Handler {
	return pages.TextForm[tenants.ServiceToken]{
		What: "service token", Field: "reason", ID: p.id, Change: p.tokens.Revoke, Again: p.writeRevoke,
		Flash: "token-revoked", Back: pages.ServiceTokensPath,
	}.Submit(p.Kit)
}
