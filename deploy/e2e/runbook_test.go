package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
)

// PostgreSQL parses each statement of the runbooks, in the schema of
// the named module.
func runbooksStatements(t *testing.T, conn *pgx.Conn) {
	t.Helper()
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
