package http

import (
	_ "embed"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
)

// OpenAPI describes the routes.
//
//go:embed openapi.json
var OpenAPI []byte

// Mount adds the routes of ingest.
func Mount(router chi.Router, guard *identity.Guard, intake *Intake, logs *Logs) {
	httpapi.Describe(router, "ingest", OpenAPI)
	router.Post("/v1/logs", httpapi.Handle(intake.Metrics.watch(intake.Post)))
	router.With(guard.RequireAPIKey()).Get("/v1/logs", httpapi.Handle(logs.List))
}
