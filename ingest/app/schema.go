package app

import (
	"github.com/weirlog/weir/ingest/internal/http"
	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Schema is that of the module's tables.
func Schema() pg.Schema { return pg.Schema{Name: postgres.Schema, Migrations: postgres.Migrations()} }

// Connections is how many a process has to its database at most.
func (c Config) Connections() int { return pg.Connections(c.DatabaseURL.Reveal(), c.searches()) }

// OpenAPI describes the module's API.
func OpenAPI() []byte { return http.OpenAPI() }
