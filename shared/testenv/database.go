package testenv

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/embedded/postgres"
)

// setUpTime bounds how long a backend may take to start, downloads included.
const setUpTime = 3 * time.Minute

// Postgres makes a new database for the test, owned by a new role that is not a
// superuser, and returns its URL. Both are dropped when the test ends.
func Postgres(t testing.TB) string {
	t.Helper()
	return newDatabase(t, adminURL(t))
}

// newDatabase makes a database on the server of a superuser's URL.
func newDatabase(t testing.TB, admin string) string {
	t.Helper()
	name := newName()
	withAdmin(t, admin, func(ctx context.Context, conn *pgx.Conn) error { return create(ctx, conn, name) })
	t.Cleanup(func() { drop(t, admin, "DATABASE "+name+" WITH (FORCE)", "ROLE "+name) })
	return urlOf(admin, name, name)
}

func newName() string { return "weir_test_" + strings.ToLower(rand.Text()[:12]) }

// create makes a role and an empty database of one name.
func create(ctx context.Context, conn *pgx.Conn, name string) error {
	if err := createRole(ctx, conn, name); err != nil {
		return err
	}
	return createDatabase(ctx, conn, name, name, "template1")
}

func createRole(ctx context.Context, conn *pgx.Conn, name string) error {
	return execAll(ctx, conn, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, secretOf(name)), fmt.Sprintf("GRANT %s TO CURRENT_USER", name))
}

// createDatabase copies files where the server does not flush them anyway:
// through its log, the default since version 15, takes four times as long.
func createDatabase(ctx context.Context, conn *pgx.Conn, name, owner, template string) error {
	var strategy string
	err := conn.QueryRow(ctx, `SELECT CASE WHEN current_setting('fsync') = 'off' AND current_setting('server_version_num')::int >= 150000
		THEN 'STRATEGY file_copy' ELSE '' END`).Scan(&strategy)
	if err != nil {
		return err
	}
	return execAll(ctx, conn, fmt.Sprintf("CREATE DATABASE %s OWNER %s TEMPLATE %s %s", name, owner, template, strategy))
}

func execAll(ctx context.Context, conn *pgx.Conn, statements ...string) error {
	for _, s := range statements {
		if _, err := conn.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func drop(t testing.TB, admin string, objects ...string) {
	withAdmin(t, admin, func(ctx context.Context, conn *pgx.Conn) error {
		for _, object := range objects {
			if _, err := conn.Exec(ctx, "DROP "+object); err != nil {
				return err
			}
		}
		return nil
	})
}

// urlOf is the server's URL for a database and its role, whose
// name is its password too.
func urlOf(admin, role, database string) string {
	u, err := url.Parse(admin)
	if err != nil {
		panic(EnvDatabase + " is not a URL, though it has been connected to")
	}
	u.User, u.Path = url.UserPassword(role, role), "/"+database
	return u.String()
}

// adminURL is the server of this run.
func adminURL(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(EnvDatabase); given != "" {
		announceGivenDatabase()
		return given
	}
	mustBeGiven(t, EnvDatabase, "containers")
	server, err := localServer()
	if err != nil {
		t.Fatalf("testenv: no PostgreSQL for the tests: %v\ntried: %s (not set), server binaries on PATH and in the usual places, fetching them", err, EnvDatabase)
	}
	return server.AdminURL()
}

var announceGivenDatabase = sync.OnceFunc(func() { announce("PostgreSQL", "given by "+EnvDatabase) })

// localServer starts this package's own server. Only the end of the
// process stops it, by its watchdog: the testing package has no hook for
// a package's end. The result refers to the server: once that were
// garbage, its watchdog's pipe would be closed.
var localServer = sync.OnceValues(func() (*postgres.Server, error) {
	server, err := LocalPostgres(context.Background())
	if err != nil {
		return nil, err
	}
	announce("PostgreSQL", "local server, binaries in "+server.Binaries())
	return server, nil
})

// LocalPostgres starts a throwaway server on this machine. It
// ends with this process, or by Stop.
func LocalPostgres(ctx context.Context) (*postgres.Server, error) { return localPostgres(ctx, false) }

func localPostgres(ctx context.Context, killable bool) (*postgres.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpTime)
	defer cancel()
	dir, err := Scratch("weir-test-postgres-")
	if err != nil {
		return nil, err
	}
	server, err := postgres.Start(ctx, postgres.Config{
		Dir:       dir,
		Cache:     filepath.Join(os.TempDir(), "weir-postgres-binaries"),
		Throwaway: true,
		Killable:  killable,
		Logger:    discard(),
	})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return server, nil
}
