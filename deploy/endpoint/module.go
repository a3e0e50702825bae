package endpoint

import (
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/pg"
	tenants "github.com/weirlog/weir/tenants/app"
)

// Schemas are those of the modules' tables, by module; Modules are
// their names in order.
var (
	Modules = []string{"ingest", "ledger", "grouping", "tenants"}
	Schemas = map[string]pg.Schema{"ingest": ingest.Schema(), "ledger": ledger.Schema(), "grouping": grouping.Schema(), "tenants": tenants.Schema()}
)
