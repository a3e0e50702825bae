package e2e

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/allinone"
	grouping "github.com/weirlog/weir/grouping/app"
	ingest "github.com/weirlog/weir/ingest/app"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	tenants "github.com/weirlog/weir/tenants/app"
)

// The schemas are the modules' names.
var schemas = []string{"grouping", "ingest", "ledger", "tenants"}

// withoutTenants are the tables in which there is nothing of any tenant: positions, leases, ids that were seen, sums over all.
// A new table without an organization has to be put here on purpose.
var withoutTenants = []string{
	"bus_positions", "bus_relays", "inbox", "inbox_idempotency", "migrations", "published_terms", "ranges",
}

// A table is what the catalogue says of one.
type table struct {
	Schema, Name                                               string
	Parent                                                     string // of a partition
	Partitioned, Organization, NotNull, Leads, Secured, Forced bool
	Policies                                                   []string
}

// tablesQuery reads every table of the modules. The column, the key and the policies are those of the table itself, so a
// partition does not hide behind its parent.
const tablesQuery = `
	SELECT n.nspname, c.relname, coalesce((SELECT p.relname FROM pg_inherits JOIN pg_class p ON p.oid = inhparent WHERE inhrelid = c.oid), ''),
		c.relkind = 'p', a.attnum IS NOT NULL, coalesce(a.attnotnull, false),
		EXISTS (SELECT FROM pg_index i WHERE i.indrelid = c.oid AND i.indisprimary AND i.indkey[0] = a.attnum),
		c.relrowsecurity, c.relforcerowsecurity,
		ARRAY(SELECT pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = c.oid AND polcmd = '*' AND polroles = '{0}')
	FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'organization' AND NOT a.attisdropped
	WHERE n.nspname = ANY ($1) AND c.relkind IN ('r', 'p') ORDER BY 1, 2`

// Every table that holds something of a tenant names the organization first in its primary key, and shows its rows to that
// organization alone, to its owner as well. Exempt are the partitions of a day, into which consumers copy and which no
// request names. The role that Weir logs in by can't walk past any of that.
func TestCatalogue(t *testing.T) {
	database := testenv.Postgres(t)
	openModules(t, database)
	conn, err := pgx.Connect(t.Context(), database)
	must(t, err)
	defer conn.Close(t.Context())
	makeDays(t, conn)
	tables := readTables(t, conn)
	byName, partitions := map[string]table{}, 0
	for _, table := range tables {
		byName[table.Schema+"."+table.Name] = table
	}
	for name, table := range byName {
		if table.Parent != "" {
			partitions++
			must(t, table.checkDay(byName[table.Schema+"."+table.Parent]))
		} else if err := table.check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if len(tables) < 20 || partitions == 0 {
		t.Errorf("the catalogue has %d tables, %d of them partitions: it is not read right", len(tables), partitions)
	}
	var bypasses bool
	must(t, conn.QueryRow(t.Context(), `SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&bypasses))
	if bypasses {
		t.Error("the login role walks past row level security")
	}
}

// check tells what is wrong with a table that is no partition.
func (d table) check() error {
	if !d.Organization {
		if !slices.Contains(withoutTenants, d.Name) {
			return fmt.Errorf("has no column organization, and is not known to hold nothing of tenants")
		}
		return nil
	}
	if !d.NotNull || !d.Leads {
		return fmt.Errorf("organization is not null: %t, leads the primary key: %t", d.NotNull, d.Leads)
	}
	if !d.Secured || !d.Forced {
		return fmt.Errorf("row level security is enabled: %t, forced: %t", d.Secured, d.Forced)
	}
	if len(d.Policies) != 1 || !strings.Contains(d.Policies[0], "organization = current_setting('weir.organization'") {
		return fmt.Errorf("its policies are %q, want one that compares the organization", d.Policies)
	}
	return nil
}

// checkDay tells what is wrong with a partition: it must be that of a day, of a table that is checked itself.
func (d table) checkDay(parent table) error {
	day, err := time.Parse("20060102", d.Name[strings.LastIndex(d.Name, "_")+1:])
	if err != nil || d.Name != pg.DayPartition(parent.Name, day) || !parent.Partitioned || parent.Parent != "" {
		return fmt.Errorf("%s.%s is no day of a partitioned table, but part of %q", d.Schema, d.Name, d.Parent)
	}
	return nil
}

func readTables(t *testing.T, conn *pgx.Conn) []table {
	t.Helper()
	rows, err := conn.Query(t.Context(), tablesQuery, schemas)
	must(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowToStructByPos[table])
	must(t, err)
	return tables
}

// openModules lets each module bring its schema up to date, as it does wherever it starts.
func openModules(t *testing.T, database string) {
	t.Helper()
	set, err := allinone.ModulesFromEnvironment()
	must(t, err)
	url, nobody, logger := httpapi.Secret(database), []string{"127.0.0.1:1"}, slog.New(slog.DiscardHandler)
	set.Ingest.DatabaseURL, set.Ledger.DatabaseURL, set.Grouping.DatabaseURL, set.Tenants.DatabaseURL = url, url, url, url
	set.Ingest.Brokers, set.Ledger.Brokers, set.Grouping.Brokers, set.Tenants.Brokers = nobody, nobody, nobody, nobody
	for _, open := range []func() (interface{ Close() }, error){
		func() (interface{ Close() }, error) { return ingest.New(t.Context(), set.Ingest, logger) },
		func() (interface{ Close() }, error) { return ledger.New(t.Context(), set.Ledger, logger) },
		func() (interface{ Close() }, error) { return grouping.New(t.Context(), set.Grouping, logger) },
		func() (interface{ Close() }, error) { return tenants.New(t.Context(), set.Tenants, logger) },
	} {
		app, err := open()
		must(t, err)
		t.Cleanup(app.Close)
	}
}

// makeDays makes a partition of every table that has some, so that there are partitions to look at.
func makeDays(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, table := range readTables(t, conn) {
		if !table.Partitioned {
			continue
		}
		must(t, pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SET LOCAL search_path = `+table.Schema); err != nil {
				return err
			}
			return pg.EnsureDays(t.Context(), tx, table.Name, time.Now())
		}))
	}
}
