package postgrestest

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
)

// URL makes a new database for the test, owned by a new role that is not a
// superuser, and returns its address. Both are dropped when the test ends.
func URL(t testing.TB) string {
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

// create makes a role and an empty database of the same name.
func create(ctx context.Context, conn *pgx.Conn, name string) error {
	if err := createRole(ctx, conn, name); err != nil {
		return err
	}
	return createDatabase(ctx, conn, name, name, "template1")
}

func createRole(ctx context.Context, conn *pgx.Conn, name string) error {
	return execAll(ctx, conn, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, secretOf(name)), fmt.Sprintf("GRANT %s TO CURRENT_USER", name))
}

// createDatabase copies files if the server does not flush them anyway:
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

// urlOf is the server's URL for a database and its role, whose password
// is its name.
func urlOf(admin, role, database string) string {
	u, err := url.Parse(admin)
	if err != nil {
		panic(testenv.EnvDatabase + " is not a URL, though it has been connected to")
	}
	u.User, u.Path = url.UserPassword(role, role), "/"+database
	return u.String()
}

// adminURL of this run's server.
func adminURL(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(testenv.EnvDatabase); given != "" {
		backend.Announce("PostgreSQL", "given by "+testenv.EnvDatabase)
		return given
	}
	backend.MustBeGiven(t, testenv.EnvDatabase, "containers")
	server, err := localServer()
	if err != nil {
		t.Fatalf("testenv: no PostgreSQL for the tests: %v\ntried: %s (not set), server binaries on PATH and in the usual places, fetching them",
			err, testenv.EnvDatabase)
	}
	return server.AdminURL()
}

// localServer starts this package's own server. Only the end of the
// process stops it, by its watchdog: the testing package has no hook
// for a package's end. The result refers to the server, since
// collecting it would close its watchdog's pipe.
var localServer = sync.OnceValues(func() (*postgres.Server, error) {
	server, err := Start(context.Background())
	if err != nil {
		return nil, err
	}
	backend.Announce("PostgreSQL", "local server, binaries in "+server.Binaries())
	return server, nil
})

// Start starts a throwaway server on this machine. It
// ends with this process, or by Stop.
func Start(ctx context.Context) (*postgres.Server, error) { return start(ctx, postgres.Config{}) }

// StartDurable is Start of a server that keeps its commits as one in production does.
func StartDurable(ctx context.Context) (*postgres.Server, error) {
	return start(ctx, postgres.Config{Durable: true})
}

func start(ctx context.Context, config postgres.Config) (*postgres.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, backend.StartTime)
	defer cancel()
	dir, err := testenv.Scratch("weir-test-postgres-")
	if err != nil {
		return nil, err
	}
	config.Dir, config.Cache, config.Throwaway = dir, filepath.Join(os.TempDir(), "weir-postgres-binaries"), true
	config.Logger = slog.New(slog.DiscardHandler)
	server, err := postgres.Start(ctx, config)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return server, nil
}
