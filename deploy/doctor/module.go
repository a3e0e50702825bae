package doctor

import (
	"context"
	"path/filepath"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/bus/relay"
	"github.com/weirlog/weir/shared/erasure"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	tenants "github.com/weirlog/weir/tenants/app"
)

// A module has its own tables.
type module struct {
	name        string
	schema      pg.Schema
	outboxes    []relay.Source
	connections func(allinone.Modules, httpapi.Secret) int                // of a process, given its database's address
	holders     func(context.Context, pgx.Tx) ([]erasure.Deletion, error) // of organizations and projects; nil: tenants, who knows them
}

var modules = []module{
	{"ingest", ingest.Schema(), ingest.Outboxes(), func(m allinone.Modules, url httpapi.Secret) int {
		m.Ingest.DatabaseURL = url
		return m.Ingest.Connections()
	}, ingest.Holders},
	{"ledger", ledger.Schema(), ledger.Outboxes(), func(m allinone.Modules, url httpapi.Secret) int {
		m.Ledger.DatabaseURL = url
		return m.Ledger.Connections()
	}, ledger.Holders},
	{"grouping", grouping.Schema(), grouping.Outboxes(), func(m allinone.Modules, url httpapi.Secret) int {
		m.Grouping.DatabaseURL = url
		return m.Grouping.Connections()
	}, grouping.Holders},
	{"tenants", tenants.Schema(), tenants.Outboxes(), func(m allinone.Modules, url httpapi.Secret) int {
		m.Tenants.DatabaseURL = url
		return m.Tenants.Connections()
	}, nil},
}

// A moduleChecker checks a module whose database answers.
type moduleChecker struct {
	checker
	module

	services allinone.Modules // settings of the modules
	broker   *brokerChecker   // what the brokers answered
	url      httpapi.Secret
	pool     *pgxpool.Pool
}

// readRows reads rows of a module's database.
func readRows[T any](ctx context.Context, c *moduleChecker, check, query string, arguments ...any) (found []T, ok bool) {
	ok = c.query(ctx, check, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectRows(rows, pgx.RowToStructByPos[T])
		return err
	}, query, arguments...)
	return found, ok
}

// readRow reads the one row that there must be.
func readRow[T any](ctx context.Context, c *moduleChecker, check, query string, arguments ...any) (found T, ok bool) {
	ok = c.query(ctx, check, func(rows pgx.Rows) (err error) {
		found, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[T])
		return err
	}, query, arguments...)
	return found, ok
}

func (c *moduleChecker) query(ctx context.Context, check string, collect func(pgx.Rows) error, query string, arguments ...any) bool {
	return c.look(ctx, check, c.name, "Look at the role's rights.", func(ctx context.Context) error {
		rows, err := c.pool.Query(ctx, query, arguments...)
		if err != nil {
			return err
		}
		return collect(rows)
	})
}

// read works in a read-only transaction.
func (c *moduleChecker) read(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pg.Snapshot(ctx, c.pool, fn)
}

// ready asks a weir run whether it can serve: its broker may answer, and
// refuse what it cannot write.
func (c *brokerChecker) ready(ctx context.Context) {
	const fix = "Read its log: it says why a part is not ready. A broker that cannot write to its folder refuses records."
	ok := c.look(ctx, "ready", "weir run", fix, func(ctx context.Context) error {
		env, err := allinone.ReadDevEnv(filepath.Join(c.DataDir, allinone.EnvFile))
		if err != nil {
			return err
		}
		api, err := client.New(env.BaseURL, env.CAFile, 1)
		if err != nil {
			return err
		}
		defer api.Close()
		return api.Ready(ctx)
	})
	if ok {
		c.report.add(OK, "ready", "weir run", "answers that it can serve", "")
	}
}
