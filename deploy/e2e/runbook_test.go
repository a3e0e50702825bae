package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// PostgreSQL parses each statement of the runbooks, in the schema of
// the named module.
func TestRunbooksStatements(t *testing.T) {
	database := postgrestest.URL(t)
	openModules(t, database, telemetry.New())
	conn, err := pgx.Connect(t.Context(), database)
	must(t, err)
	defer conn.Close(context.Background())
	files, err := filepath.Glob("../docs/runbooks/*.md")
	must(t, err)
	statement, found := regexp.MustCompile(`sql (\w+) "([^"]+)"`), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		must(t, err)
		for _, match := range statement.FindAllStringSubmatch(string(text), -1) {
			found++
			if !slices.Contains(schemas, match[1]) {
				t.Errorf("%s: %q is no module", filepath.Base(file), match[1])
			}
			_, err := conn.Exec(t.Context(), `SELECT set_config('search_path', $1, false)`, match[1])
			must(t, err)
			if _, err := conn.Exec(t.Context(), "EXPLAIN "+match[2]); err != nil {
				t.Errorf("%s: %q: %v", filepath.Base(file), match[2], err)
			}
		}
	}
	if found < 10 {
		t.Errorf("only %d statements are found", found)
	}
}
