package e2e

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// What the modules have once they have migrated their schemas: bounded and
// secured tables, documented metrics, and what the runbooks read.
func TestModules(t *testing.T) {
	database, registry := postgrestest.URL(t), telemetry.New()
	modules, conn := openModules(t, database, registry), dial(t, database)
	t.Run("tables have a bound", func(t *testing.T) { tablesHaveABound(t, modules, conn, registry) })
	t.Run("catalogue", func(t *testing.T) { catalogueIsSecured(t, conn) })
	t.Run("metrics", func(t *testing.T) { metricsAreDocumented(t, registry) })
	t.Run("runbooks", func(t *testing.T) { runbooksStatements(t, conn) })
}

// Every table of a schema has a bound, named by its module with what
// enforces it, which must exist. Every name is a table's. After the
// module has pruned, metrics show each table's size, and for pruned
// ones what was removed and kept.
func tablesHaveABound(t *testing.T, modules []schemaOwner, conn *pgx.Conn, registry *telemetry.Registry) {
	bounds := map[string]prune.Bound{}
	for i, module := range modules {
		must(t, module.Prune(t.Context()))
		for _, bound := range module.Bounds() {
			name := schemas[i] + "." + bound.Table
			if _, twice := bounds[name]; twice || bound.Keeps == "" || bound.By == "" {
				t.Errorf("%s keeps %q by %q; twice: %t", name, bound.Keeps, bound.By, twice)
			}
			bounds[name] = bound
		}
	}
	shown := tablesShown(t, registry)
	for _, table := range readTables(t, conn) {
		if table.Parent != "" {
			continue
		}
		name := table.Schema + "." + table.Name
		bound, bounded := bounds[name]
		if !bounded {
			t.Errorf("%s grows without a bound: name what keeps it small beside its code, see prune.Bound", name)
		}
		checkMeasured(t, shown, name, bound)
		checkEnforced(t, conn, name, bound)
		delete(bounds, name)
	}
	for name := range bounds {
		t.Errorf("%s has a bound and is no table", name)
	}
}

// checkMeasured checks that a table has the metrics that show a failing bound.
func checkMeasured(t *testing.T, shown map[string]bool, name string, bound prune.Bound) {
	t.Helper()
	wanted := []string{"weir_table_bytes"}
	if bound.By == "shared/prune" {
		wanted = append(wanted, "weir_pruned_total", "weir_prune_oldest_age_seconds")
	}
	for _, metric := range wanted {
		if !shown[metric+" "+name] {
			t.Errorf("%s has no %s after its module has pruned", name, metric)
		}
	}
}

// What a bound may name of a table or a page.
var (
	namesKey     = regexp.MustCompile(`foreign key to (\w+)`)
	namesSetting = regexp.MustCompile(`WEIR_[A-Z_]+`)
)

// checkEnforced checks what a bound names: a foreign key that removes
// rows with others, a key of one row, a setting.
func checkEnforced(t *testing.T, conn *pgx.Conn, name string, bound prune.Bound) {
	t.Helper()
	if key := namesKey.FindStringSubmatch(bound.By); key != nil && !goesWith(t, conn, name, key[1]) {
		t.Errorf("%s has no foreign key to %s that removes its rows", name, key[1])
	}
	if bound.Keeps == "one row" && !hasOneRow(t, conn, name) {
		t.Errorf("%s may have more than one row", name)
	}
	settings, err := os.ReadFile("../docs/settings.md")
	must(t, err)
	for _, setting := range namesSetting.FindAllString(bound.By, -1) {
		if !strings.Contains(string(settings), "`"+setting+"`") {
			t.Errorf("%s is bounded by %s, which is no setting", name, setting)
		}
	}
}

// goesWith reports whether rows of a table are deleted with those of
// another one of its schema.
func goesWith(t *testing.T, conn *pgx.Conn, name, parent string) (goes bool) {
	t.Helper()
	must(t, conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_constraint k JOIN pg_class p ON p.oid = k.confrelid
		WHERE k.conrelid = $1::text::regclass AND p.relname = $2 AND k.contype = 'f' AND k.confdeltype = 'c')`, name, parent).Scan(&goes))
	return goes
}

// hasOneRow reports whether the primary key of a table has one possible value.
func hasOneRow(t *testing.T, conn *pgx.Conn, name string) (one bool) {
	t.Helper()
	must(t, conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_constraint p JOIN pg_constraint c USING (conrelid)
		JOIN pg_attribute a ON a.attrelid = p.conrelid AND p.conkey = ARRAY[a.attnum]
		WHERE p.conrelid = $1::text::regclass AND p.contype = 'p' AND c.contype = 'c' AND c.conkey = p.conkey
			AND pg_get_constraintdef(c.oid) = 'CHECK (' || quote_ident(a.attname) || ')')`, name).Scan(&one))
	return one
}

// tablesShown returns the metrics of tables, as "weir_table_bytes
// ledger.books".
func tablesShown(t *testing.T, registry *telemetry.Registry) map[string]bool {
	t.Helper()
	families, err := registry.Registered().Gather()
	must(t, err)
	shown := map[string]bool{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			labels := map[string]string{}
			for _, label := range metric.GetLabel() {
				labels[label.GetName()] = label.GetValue()
			}
			shown[fmt.Sprintf("%s %s.%s", family.GetName(), labels["service"], labels["table"])] = true
		}
	}
	return shown
}
