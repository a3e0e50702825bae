package app

import (
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/pg"
	schema "github.com/weirlog/weir/tenants/internal"
	"github.com/weirlog/weir/tenants/internal/bus"
)

// Schema is that of the module's tables.
func Schema() pg.Schema { return pg.Schema{Name: schema.Name, Migrations: schema.Migrations()} }

// Outboxes are the tables that are published.
func Outboxes() []relay.Source {
	return []relay.Source{{Relay: bus.RelayName, Table: "events"}, {Relay: bus.WithdrawalsName, Table: "withdrawals"}}
}

// relays is how many relays publish, each on its own connection.
const relays = 3

// Connections is the most connections that a process has to its database.
func (c Config) Connections() int { return pg.Connections(c.DatabaseURL.Reveal(), readers) + relays }
