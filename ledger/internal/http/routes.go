// Package http answers for the ledger over HTTP: balances, entries and usage of an organization.
package http

import (
	"context"
	_ "embed"
	"errors"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// ScopeRead is what a service token needs to read books.
const ScopeRead = "billing:read"

//go:embed openapi.json
var openAPI []byte

// An API reads books for service tokens.
type API struct {
	Pool  *pgxpool.Pool
	Store *postgres.Store
	Guard *identity.Guard
}

// Mount adds the ledger's routes.
func (a *API) Mount(router chi.Router) {
	document := httpapi.Document(openAPI)
	router.Get("/v1/openapi.json", document) // a gateway answers this path with the parts of all modules
	router.Get("/v1/ledger/openapi.json", document)
	router.Group(func(router chi.Router) {
		router.Use(a.Guard.RequireScope(ScopeRead))
		router.Get("/v1/organizations/{organization}/balance", httpapi.Handle(a.balance))
		router.Get("/v1/organizations/{organization}/entries", httpapi.Handle(a.entries))
		router.Get("/v1/organizations/{organization}/usage", httpapi.Handle(a.usage))
	})
}

// read runs fn in a snapshot that sees the rows of the path's organization alone. An organization that the token does not
// reach is answered like one that does not exist.
func (a *API) read(r *http.Request, fn func(ctx context.Context, tx pgx.Tx, organization pg.Organization) error) error {
	organization := chi.URLParam(r, "organization")
	if organization == "" || !identity.FromContext(r.Context()).Reaches(organization) {
		return httpapi.NotFound("organization", organization)
	}
	err := pg.Snapshot(r.Context(), a.Pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(r.Context(), tx, pg.Organization(organization)); err != nil {
			return httpapi.NotFound("organization", organization)
		}
		return fn(r.Context(), tx, pg.Organization(organization))
	})
	if errors.Is(err, postgres.ErrNoOrganization) {
		return httpapi.NotFound("organization", organization)
	}
	return err
}
