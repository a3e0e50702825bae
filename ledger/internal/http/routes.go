package http

import (
	_ "embed"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/ledger/internal/services"
	"github.com/weirlog/weir/ledger/internal/unitofwork"
	"github.com/weirlog/weir/shared/answers"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// Scopes of service tokens: to read books, and to change them.
const (
	ScopeRead  = "billing:read"
	ScopeWrite = "billing:write"
)

// OpenAPI describes the routes.
//
//go:embed openapi.json
var OpenAPI []byte

// An API serves service tokens.
type API struct {
	*services.Services
	Guard         *identity.Guard
	StatementPage func(http.ResponseWriter, *http.Request, ledger.Statement) // writes a statement as HTML
}

// Mount adds the ledger's routes.
func (a *API) Mount(router chi.Router) {
	httpapi.Describe(router, "ledger", OpenAPI)
	router.Group(func(router chi.Router) {
		router.Use(a.Guard.RequireScope(ScopeRead))
		router.Get("/v1/organizations/{organization}/balance", httpapi.Handle(a.balance))
		router.Get("/v1/organizations/{organization}/entries", httpapi.Handle(a.transfers))
		router.Get("/v1/organizations/{organization}/chain", httpapi.Handle(a.chain))
		router.Get("/v1/organizations/{organization}/verification", httpapi.Handle(a.verify))
		router.Get("/v1/organizations/{organization}/usage", httpapi.Handle(a.usage))
		router.Get("/v1/organizations/{organization}/refusals", httpapi.Handle(a.refusals))
		router.Get("/v1/accounts", httpapi.Handle(a.accounts))
		router.Get("/v1/organizations/{organization}/subscription", httpapi.Handle(a.subscription))
		router.Get("/v1/organizations/{organization}/grants", httpapi.Handle(a.grants))
		router.Get("/v1/organizations/{organization}/statements", httpapi.Handle(a.statements))
		router.Get("/v1/organizations/{organization}/statements/{statement}", httpapi.Handle(a.statement))
		router.Get("/v1/organizations/{organization}/forecast", httpapi.Handle(a.forecast))
		router.Post("/v1/organizations/{organization}/dry-run", httpapi.Handle(a.dryRun))
		router.Post("/v1/organizations/{organization}/simulation", httpapi.Handle(a.simulate))
		router.Get("/v1/organizations/{organization}/budgets", httpapi.Handle(a.budgets))
		router.Get("/v1/organizations/{organization}/thresholds", httpapi.Handle(a.thresholds))
		router.Get("/v1/organizations/{organization}/test-clock", httpapi.Handle(a.testClock))
	})
	router.Group(func(router chi.Router) {
		router.Use(a.Guard.RequireScope(ScopeWrite))
		router.Put("/v1/organizations/{organization}/subscription", httpapi.Handle(a.subscribe))
		router.Post("/v1/organizations/{organization}/grants", httpapi.Handle(a.grant))
		router.Post("/v1/organizations/{organization}/grants/{grant}/void", httpapi.Handle(a.void))
		router.Post("/v1/organizations/{organization}/adjustments", httpapi.Handle(a.adjust))
		router.Put("/v1/organizations/{organization}/test-clock", httpapi.Handle(a.advanceTestClock))
		router.Post("/v1/organizations/{organization}/test-clock/use", httpapi.Handle(a.rehearseUse))
		router.Put("/v1/organizations/{organization}/thresholds", httpapi.Handle(a.setThresholds))
		router.Put("/v1/organizations/{organization}/budgets", httpapi.Handle(a.setBudgets))
		router.Delete("/v1/organizations/{organization}/budgets", httpapi.Handle(a.removeBudget))
	})
}

// requestOf returns a deciding request and its organization.
func requestOf(r *http.Request) (organization string, request unitofwork.Request, err error) {
	if organization, err = reached(r); err != nil {
		return "", request, err
	}
	key, err := httpapi.IdempotencyKey(r)
	return organization, unitofwork.Request{
		Actor: identity.FromContext(r.Context()).ID, ID: httpapi.RequestID(r.Context()), IdempotencyKey: key,
	}, err
}

// requestWith is requestOf that decodes the body into body.
func requestWith(w http.ResponseWriter, r *http.Request, body any) (organization string, request unitofwork.Request, err error) {
	if organization, request, err = requestOf(r); err != nil {
		return organization, request, err
	}
	return organization, request, httpapi.ReadJSON(w, r, body)
}

// reached returns the path's organization. One outside the token's
// reach looks missing.
func reached(r *http.Request) (string, error) {
	organization := chi.URLParam(r, "organization")
	if organization == "" || !identity.FromContext(r.Context()).Reaches(organization) {
		return "", httpapi.NotFound("organization", organization)
	}
	return organization, nil
}

// answer maps a service's error about an organization to the answer.
func answer(err error, organization string) error {
	var invalid ledger.Invalid
	var full ledger.LimitReached
	var project ledger.NoProject
	switch {
	case errors.Is(err, ledger.ErrNoOrganization):
		return httpapi.NotFound("organization", organization)
	case errors.As(err, &project):
		return httpapi.NotFound("project", project.Project)
	case errors.Is(err, ledger.ErrNotKept):
		return httpapi.Invalid("?at", httpapi.CodeInvalidRequest, "What was booked then is no longer kept.", "Use a later time.")
	case errors.Is(err, ledger.ErrNoStatement):
		return httpapi.NewProblem(http.StatusNotFound, httpapi.CodeNotFound, "The organization has no statement of this number.")
	case errors.Is(err, answers.ErrReused):
		return httpapi.IdempotencyKeyReused()
	case errors.As(err, &invalid):
		return httpapi.Invalid("/"+invalid.Field, httpapi.CodeInvalidRequest, invalid.Detail, invalid.Fix)
	case errors.As(err, &full):
		return httpapi.NewProblem(http.StatusConflict, "limit_reached", full.Error()).With("limit", full.Limit)
	}
	return err
}
