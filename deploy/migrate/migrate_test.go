package migrate_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/deploy/migrate"
	"github.com/weirlog/weir/deploy/provision"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// An installation is a server with the files of weir provision.
type installation struct {
	server  *postgres.Server
	secrets string
}

// provisioned runs the roles' script as the job of compose.yaml does.
func provisioned(t *testing.T) *installation {
	t.Helper()
	server := started(t)
	i := &installation{server, filepath.Join(t.TempDir(), "secrets")}
	admin, err := url.Parse(server.AdminURL())
	testenv.Must(t, err)
	testenv.Must(t, provision.Ensure(i.secrets, admin.Host, time.Now()))
	i.makeRoles(t)
	for _, module := range endpoint.Modules {
		t.Setenv(endpoint.DatabaseOf(module)+"_FILE", filepath.Join(i.secrets, provision.DatabaseURL(module)))
		t.Setenv(endpoint.MigratingDatabaseOf(module)+"_FILE", filepath.Join(i.secrets, provision.MigrateDatabaseURL(module)))
	}
	return i
}

func started(t *testing.T) *postgres.Server {
	t.Helper()
	server, err := postgrestest.Start(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() { testenv.Must(t, server.Stop(context.WithoutCancel(t.Context()))) })
	return server
}

func (i *installation) makeRoles(t *testing.T) {
	t.Helper()
	psql(t, i.server, filepath.Join(i.secrets, provision.Roles))
}

// psql runs a script as the server's superuser.
func psql(t *testing.T, server *postgres.Server, script string) {
	t.Helper()
	folder, err := postgres.Binaries()
	testenv.Must(t, err)
	program := exec.CommandContext(t.Context(), filepath.Join(folder, "psql"), server.AdminURL(),
		"--no-psqlrc", "--quiet", "-v", "ON_ERROR_STOP=1", "--file="+script)
	if out, err := program.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
}

// as runs one statement as the role in a file of an address, in a schema.
func (i *installation) as(t *testing.T, file, schema, statement string) error {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), i.address(t, file))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	_, err = conn.Exec(t.Context(), `SET search_path = `+schema+`; `+statement)
	return err
}

// One installation is migrated, lost in part and restored, and its roles change.
func TestInstallation(t *testing.T) {
	i := provisioned(t)
	var out strings.Builder
	testenv.Must(t, migrate.Run(t.Context(), migrate.Config{}, &out))
	t.Run("serving has what is stated", func(t *testing.T) { i.servingHasWhatIsStated(t, out.String()) })
	t.Run("roles are apart", i.rolesAreApart)
	t.Run("restored is served", i.restoredIsServed)
	t.Run("one role becomes two", i.oneRoleBecomesTwo)
}

// Every table and sequence of the modules states the rights of serving,
// nobody has more, and every stated one exists.
func (i *installation) servingHasWhatIsStated(t *testing.T, said string) {
	for _, module := range endpoint.Modules {
		if want := fmt.Sprintf("%-9s up to date; %[1]s_owner owns it, %[1]s serves\n", module); !strings.Contains(said, want) {
			t.Errorf("%q lacks %q", said, want)
		}
		i.compare(t, module)
	}
}

// held lists the relations of a schema without partitions, with the
// rights of all but the owner; for the sequence of an identity nobody
// needs a right.
const held = `SELECT c.relname::text, c.relkind = 'S' AND EXISTS (SELECT FROM pg_depend WHERE objid = c.oid AND deptype = 'i'),
	ARRAY(SELECT pg_get_userbyid(grantee) || ': ' || privilege_type FROM aclexplode(relacl) WHERE grantee <> relowner
		UNION ALL SELECT pg_get_userbyid(grantee) || ': ' || privilege_type || ' (' || attname || ')' FROM pg_attribute, aclexplode(attacl)
			WHERE attrelid = c.oid AND grantee <> relowner)
	FROM pg_class c WHERE relnamespace = $1::text::regnamespace AND relkind IN ('r', 'p', 'S') AND NOT relispartition ORDER BY 1`

func (i *installation) compare(t *testing.T, module string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), i.address(t, provision.MigrateDatabaseURL(module)))
	testenv.Must(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), held, module)
	testenv.Must(t, err)
	var (
		stated   = endpoint.Schemas[module].Rights()
		name     string
		identity bool
		rights   []string
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &identity, &rights}, func() error {
		if _, known := stated[name]; !known && !identity {
			t.Errorf("%s.%s says not what serving may do with it: see pg.Rights", module, name)
		}
		if slices.Sort(rights); !slices.Equal(rights, prefixed(module+": ", stated.On(name))) {
			t.Errorf("%s.%s: %q instead of %q", module, name, rights, stated.On(name))
		}
		delete(stated, name)
		return nil
	})
	testenv.Must(t, err)
	if len(stated) > 0 {
		t.Errorf("%s has no %v", module, stated)
	}
}

func prefixed(prefix string, all []string) []string {
	for i := range all {
		all[i] = prefix + all[i]
	}
	return all
}

// A role that serves can't change its schema, nor see that of another module.
func (i *installation) rolesAreApart(t *testing.T) {
	for _, module := range endpoint.Modules {
		serving := provision.DatabaseURL(module)
		testenv.Must(t, i.as(t, serving, module, `SELECT FROM erasures`))
		for _, statement := range []string{
			`TRUNCATE erasures`, `DELETE FROM migrations`, `ALTER TABLE erasures NO FORCE ROW LEVEL SECURITY`, `DROP TABLE erasures`,
			`CREATE TABLE more (id int)`, `CREATE SCHEMA more`, `CREATE TEMP TABLE more (id int)`, `CREATE TABLE public.more (id int)`, `UPDATE migrations SET file = ''`,
			`CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'`, `SET ROLE ` + module + `_owner`, `SET session_replication_role = replica`,
		} {
			if err := i.as(t, serving, module, statement); err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s: %s: %v", module, statement, err)
			}
		}
	}
	elsewhere, err := url.Parse(i.address(t, provision.DatabaseURL("ingest")))
	testenv.Must(t, err)
	elsewhere.Path = "/ledger"
	if _, err := pgx.Connect(t.Context(), elsewhere.String()); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("ingest at the ledger's database: %v", err)
	}
}

// If one role did both, the script takes the tables from it, and weir
// migrate grants what serving needs. If that is done by hand, it loses
// the right to connect with the database, which is closed to everybody:
// it gets that back too.
func (i *installation) oneRoleBecomesTwo(t *testing.T) {
	for way, convert := range map[string]func(){
		"the script": func() { i.makeRoles(t) },
		"by hand": func() {
			i.asAdmin(t, `ALTER DATABASE ledger OWNER TO ledger_owner`, `REASSIGN OWNED BY ledger TO ledger_owner`)
		},
	} {
		t.Run(way, func(t *testing.T) {
			i.asAdmin(t, `ALTER DATABASE ledger OWNER TO ledger`, `REASSIGN OWNED BY ledger_owner TO ledger`)
			i.becomesTwo(t, convert)
		})
	}
}

func (i *installation) becomesTwo(t *testing.T, convert func()) {
	t.Helper()
	serving := provision.DatabaseURL("ledger")
	t.Setenv(endpoint.MigratingDatabaseOf("ledger")+"_FILE", "")
	testenv.Must(t, migrate.Run(t.Context(), migrate.Config{Modules: []string{"ledger"}}, &strings.Builder{}))
	testenv.Must(t, i.as(t, serving, "ledger", `CREATE TABLE before (id int)`)) // it is the owner
	testenv.Must(t, i.as(t, serving, "ledger", `DROP TABLE before`))
	convert()
	t.Setenv(endpoint.MigratingDatabaseOf("ledger")+"_FILE", filepath.Join(i.secrets, provision.MigrateDatabaseURL("ledger")))
	testenv.Must(t, migrate.Run(t.Context(), migrate.Config{Modules: []string{"ledger"}}, &strings.Builder{}))
	i.compare(t, "ledger")
	testenv.Must(t, i.as(t, serving, "ledger", `SELECT FROM erasures`))
}

// asAdmin runs statements in the ledger's database.
func (i *installation) asAdmin(t *testing.T, statements ...string) {
	t.Helper()
	address, err := url.Parse(i.server.AdminURL())
	testenv.Must(t, err)
	address.Path = "/ledger"
	admin, err := pgx.Connect(t.Context(), address.String())
	testenv.Must(t, err)
	defer admin.Close(context.WithoutCancel(t.Context()))
	for _, statement := range statements {
		_, err := admin.Exec(t.Context(), statement)
		testenv.Must(t, err)
	}
}

// Two addresses must name one database.
func TestAddressesOfTwoDatabases(t *testing.T) {
	t.Setenv(endpoint.SharedDatabase, "postgres://ledger:hunter2@127.0.0.1/ledger")
	t.Setenv(endpoint.MigratingDatabase, "postgres://owner:hunter2@127.0.0.1/tenants")
	err := migrate.Run(t.Context(), migrate.Config{Modules: []string{"ledger"}}, &strings.Builder{})
	if err == nil || !strings.Contains(err.Error(), `"tenants" at 127.0.0.1:5432`) || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

// address returns that of a database, from one of the files.
func (i *installation) address(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(i.secrets, file))
	testenv.Must(t, err)
	return strings.TrimSpace(string(text))
}

// The statements of secure.md create a ledger with two roles, merge the
// two for programs without weir migrate, and split the one.
func TestSecurePage(t *testing.T) {
	server := started(t)
	follow(t, server, "### Let no service own its tables")
	migrated(t, server, "ledger_owner owns it, ledger serves")
	refused(t, server, `TRUNCATE ledger.erasures`)

	follow(t, server, "#### Back to one role")
	testenv.Must(t, execute(t, server, "ledger", `CREATE SCHEMA IF NOT EXISTS ledger; TRUNCATE ledger.erasures`))
	testenv.Must(t, execute(t, server, "postgres", `DROP ROLE ledger_owner`))

	follow(t, server, "#### Where one role has done both")
	refused(t, server, `SELECT FROM ledger.erasures`)
	migrated(t, server, "ledger_owner owns it, ledger serves")
	testenv.Must(t, execute(t, server, "ledger", `SELECT FROM ledger.erasures`))
	refused(t, server, `TRUNCATE ledger.erasures`)
}

// follow runs the first statements of secure.md below a heading.
func follow(t *testing.T, server *postgres.Server, heading string) {
	t.Helper()
	page, err := os.ReadFile("../docs/secure.md")
	testenv.Must(t, err)
	_, below, found := strings.Cut(string(page), "\n"+heading+"\n")
	statements := regexp.MustCompile("(?ms)^```sql\n(.*?)^```$").FindStringSubmatch(below)
	if !found || statements == nil {
		t.Fatalf("secure.md has no statements below %q", heading)
	}
	script := filepath.Join(t.TempDir(), "script.sql")
	testenv.Must(t, os.WriteFile(script, []byte(strings.ReplaceAll(statements[1], "…", "secret")), 0o600))
	psql(t, server, script)
}

func migrated(t *testing.T, server *postgres.Server, want string) {
	t.Helper()
	t.Setenv(endpoint.DatabaseOf("ledger"), addressOf(t, server, "ledger"))
	t.Setenv(endpoint.MigratingDatabaseOf("ledger"), addressOf(t, server, "ledger_owner"))
	var out strings.Builder
	testenv.Must(t, migrate.Run(t.Context(), migrate.Config{Modules: []string{"ledger"}}, &out))
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
	testenv.Must(t, err)
	address.Path = "/ledger"
	if role != address.User.Username() {
		address.User = url.UserPassword(role, "secret")
	}
	return address.String()
}

// A restored schema belongs to its owner alone until weir migrate gives
// the serving role its rights.
func (i *installation) restoredIsServed(t *testing.T) {
	ledger := migrate.Config{Modules: []string{"ledger"}}
	folder, err := backup.Make(t.Context(), backup.Config{To: t.TempDir(), Jobs: 1, Source: backup.Source{DataDir: t.TempDir()}}, t.Output())
	testenv.Must(t, err)
	testenv.Must(t, i.as(t, provision.MigrateDatabaseURL("ledger"), "ledger", `DROP SCHEMA ledger CASCADE`))
	_, err = backup.Restore(t.Context(), backup.RestoreConfig{From: folder, Modules: ledger.Modules}, t.Output())
	testenv.Must(t, err)
	if err := i.as(t, provision.DatabaseURL("ledger"), "ledger", `SELECT FROM ledger.erasures`); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("before weir migrate: %v", err)
	}
	testenv.Must(t, migrate.Run(t.Context(), ledger, t.Output()))
	i.compare(t, "ledger")
}
