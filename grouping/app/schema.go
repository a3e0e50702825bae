package app

import (
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/http"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/pg"
)

// Schema is that of the module's tables.
func Schema() pg.Schema { return pg.Schema{Name: postgres.Schema, Migrations: postgres.Migrations()} }

// Outboxes are the tables that are published.
func Outboxes() []relay.Source { return []relay.Source{{Relay: bus.RelayName, Table: "facts"}} }

// relays is how many relays publish, each on its own connection.
const relays = 1

// Connections is a process's most database connections.
func (c Config) Connections() int { return pg.Connections(c.DatabaseURL.Reveal(), c.reads()) + relays }

// OpenAPI describes the module's API.
func OpenAPI() []byte { return http.OpenAPI() }
