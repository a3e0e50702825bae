package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/deploy/allinone"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/process"
	tenants "github.com/weirlog/weir/tenants/app"
)

// A module is one with tables of its own.
type module struct {
	name        string
	schema      pg.Schema
	outboxes    []relay.Source
	connections func(allinone.Modules, httpapi.Secret) int // of a process, with an address of its database
}

var modules = []module{
	{"ingest", ingest.Schema(), nil, func(m allinone.Modules, url httpapi.Secret) int {
		m.Ingest.DatabaseURL = url
		return m.Ingest.Connections()
	}},
	{"ledger", ledger.Schema(), ledger.Outboxes(), func(m allinone.Modules, url httpapi.Secret) int {
		m.Ledger.DatabaseURL = url
		return m.Ledger.Connections()
	}},
	{"grouping", grouping.Schema(), grouping.Outboxes(), func(m allinone.Modules, url httpapi.Secret) int {
		m.Grouping.DatabaseURL = url
		return m.Grouping.Connections()
	}},
	{"tenants", tenants.Schema(), tenants.Outboxes(), func(m allinone.Modules, url httpapi.Secret) int {
		m.Tenants.DatabaseURL = url
		return m.Tenants.Connections()
	}},
}

const sharedDatabaseVariable = "WEIR_DATABASE_URL"

// databaseVariable names the database of one module, where each has its own.
func databaseVariable(module string) string {
	return "WEIR_" + strings.ToUpper(module) + "_DATABASE_URL"
}

// databaseURL is the address of a module's database.
func (e *examination) databaseURL(module string) (httpapi.Secret, error) {
	for _, variable := range []string{databaseVariable(module), sharedDatabaseVariable} {
		if url := os.Getenv(variable); url != "" {
			return httpapi.Secret(url), process.CheckDatabaseURL(url)
		}
		if file := os.Getenv(variable + process.FileSuffix); file != "" {
			url, err := process.SecretIn(file, variable+process.FileSuffix)
			if err == nil {
				err = process.CheckDatabaseURL(url)
			}
			return httpapi.Secret(url), err
		}
	}
	url, err := postgres.Running(filepath.Join(e.DataDir, "postgres"))
	if errors.Is(err, postgres.ErrNotRunning) {
		return "", fmt.Errorf("neither %s nor %s is set, and no weir run is at work in the data directory %s",
			databaseVariable(module), sharedDatabaseVariable, e.DataDir)
	}
	return httpapi.Secret(url), err
}

// An opened module is one whose database answers.
type opened struct {
	module

	url  httpapi.Secret
	pool *pgxpool.Pool
}

// read works in a read-only transaction.
func (o opened) read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pg.Snapshot(ctx, o.pool, fn)
}
