package migrate_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/deploy/migrate"
	"github.com/weirlog/weir/shared/embedded/postgres"
)

// The statements of secure.md create a ledger with two roles, merge the
// two for programs without weir migrate, and split the one.
func TestSecurePage(t *testing.T) {
	server := started(t)
	follow(t, server, "### Let no service own its tables")
	migrated(t, server, "ledger_owner owns it, ledger serves")
	refused(t, server, `TRUNCATE ledger.erasures`)

	follow(t, server, "#### Back to one role")
	must(t, execute(t, server, "ledger", `CREATE SCHEMA IF NOT EXISTS ledger; TRUNCATE ledger.erasures`))
	must(t, execute(t, server, "postgres", `DROP ROLE ledger_owner`))

	follow(t, server, "#### Where one role has done both")
	refused(t, server, `SELECT FROM ledger.erasures`)
	migrated(t, server, "ledger_owner owns it, ledger serves")
	must(t, execute(t, server, "ledger", `SELECT FROM ledger.erasures`))
	refused(t, server, `TRUNCATE ledger.erasures`)
}

// follow runs the first statements of secure.md below a heading.
func follow(t *testing.T, server *postgres.Server, heading string) {
	t.Helper()
	page, err := os.ReadFile("../docs/secure.md")
	must(t, err)
	_, below, found := strings.Cut(string(page), "\n"+heading+"\n")
	statements := regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindStringSubmatch(below)
	if !found || statements == nil {
		t.Fatalf("secure.md has no statements below %q", heading)
	}
	script := filepath.Join(t.TempDir(), "script.sql")
	must(t, os.WriteFile(script, []byte(strings.ReplaceAll(statements[1], "…", "secret")), 0o600))
	psql(t, server, script)
}

func migrated(t *testing.T, server *postgres.Server, want string) {
	t.Helper()
	t.Setenv(endpoint.DatabaseOf("ledger"), addressOf(t, server, "ledger"))
	t.Setenv(endpoint.MigratingDatabaseOf("ledger"), addressOf(t, server, "ledger_owner"))
	var out strings.Builder
	must(t, migrate.Run(t.Context(), migrate.Config{Modules: []string{"ledger"}}, &out))
	if !strings.Contains(out.String(), want) {
		t.Errorf("%q lacks %q", out.String(), want)
	}
}

// refused checks that the serving role may connect, and has no right.
func refused(t *testing.T, server *postgres.Server, statement string) {
	t.Helper()
	err := execute(t, server, "ledger", statement)
	if err == nil || !strings.Contains(err.Error(), "42501") || strings.Contains(err.Error(), "failed to connect") {
		t.Errorf("%s: %v", statement, err)
	}
}

// execute runs a statement in the ledger's database.
func execute(t *testing.T, server *postgres.Server, role, statement string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), addressOf(t, server, role))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), statement)
	return err
}

// addressOf returns that of the ledger's database; the superuser
// keeps its password.
func addressOf(t *testing.T, server *postgres.Server, role string) string {
	t.Helper()
	address, err := url.Parse(server.AdminURL())
	must(t, err)
	address.Path = "/ledger"
	if role != address.User.Username() {
		address.User = url.UserPassword(role, "secret")
	}
	return address.String()
}
