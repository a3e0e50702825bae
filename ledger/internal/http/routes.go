package http

import (
	_ "embed"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/service"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// ScopeRead is what a service token needs to read books.
const ScopeRead = "billing:read"

//go:embed openapi.json
var openAPI []byte

// An API answers service tokens.
type API struct {
	Service *service.Service
	Guard   *identity.Guard
}

// Mount adds the ledger's routes.
func (a *API) Mount(router chi.Router) {
	document := httpapi.Document(openAPI)
	router.Get("/v1/openapi.json", document) // a gateway answers this path with the parts of all modules
	router.Get("/v1/ledger/openapi.json", document)
	router.Group(func(router chi.Router) {
		router.Use(a.Guard.RequireScope(ScopeRead))
		router.Get("/v1/organizations/{organization}/balance", httpapi.Handle(a.balance))
		router.Get("/v1/organizations/{organization}/entries", httpapi.Handle(a.transfers))
		router.Get("/v1/organizations/{organization}/usage", httpapi.Handle(a.usage))
		router.Get("/v1/organizations/{organization}/refusals", httpapi.Handle(a.refusals))
		router.Get("/v1/accounts", httpapi.Handle(a.accounts))
	})
}

// reached is the path's organization. One out of the token's reach is answered like one that does
// not exist.
func reached(r *http.Request) (string, error) {
	organization := chi.URLParam(r, "organization")
	if organization == "" || !identity.FromContext(r.Context()).Reaches(organization) {
		return "", httpapi.NotFound("organization", organization)
	}
	return organization, nil
}

// answer turns an error of the service about an organization into the answer.
func answer(err error, organization string) error {
	if errors.Is(err, ledger.ErrNoOrganization) {
		return httpapi.NotFound("organization", organization)
	}
	if errors.Is(err, ledger.ErrNotKept) {
		return httpapi.Invalid("?at", httpapi.CodeInvalidRequest, "What was booked then is not kept any more.", "Use a later time.")
	}
	return err
}
