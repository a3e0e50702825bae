package app

import (
	"github.com/weirlog/weir/ledger/internal/bus"
	"github.com/weirlog/weir/ledger/internal/http"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/pg"
)

// Schema describes the schema of the module.
func Schema() pg.Schema { return pg.Schema{Name: postgres.Schema, Migrations: postgres.Migrations()} }

// Outboxes returns the tables from which the module publishes.
func Outboxes() []relay.Source { return []relay.Source{{Relay: bus.RelayName, Table: "facts"}} }

// relays is the number of publishers, each with its own connection.
const relays = 1

// Connections is the most connections of a process to its database.
func (c Config) Connections() int { return pg.Connections(c.DatabaseURL.Reveal(), readers) + relays }

// OpenAPI describes the module's API.
func OpenAPI() []byte { return http.OpenAPI() }
