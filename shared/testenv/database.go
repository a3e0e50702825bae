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

// Postgres makes a new database for the test, owned by a new role that is not a superuser, and returns its URL. Both
// are dropped when the test ends; when it has failed, the URL is in its log while it runs.
func Postgres(t testing.TB) string {
	t.Helper()
	return newDatabase(t, adminURL(t))
}

// newDatabase makes a database on the server of a superuser's URL.
func newDatabase(t testing.TB, admin string) string {
	t.Helper()
	name := "weir_test_" + strings.ToLower(rand.Text()[:12])
	withAdmin(t, admin, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, fmt.Sprintf("CREATE ROLE %s LOGIN PASSWORD '%s'", name, name)); err != nil {
			return err
		}
		if _, err := conn.Exec(ctx, fmt.Sprintf("GRANT %s TO CURRENT_USER", name)); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, fmt.Sprintf("CREATE DATABASE %s OWNER %s", name, name))
		return err
	})
	t.Cleanup(func() { drop(t, admin, name) })
	return urlOf(t, admin, name)
}

func drop(t testing.TB, admin, name string) {
	withAdmin(t, admin, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, "DROP ROLE "+name)
		return err
	})
}

// withAdmin runs do on a connection that may create databases. Its context outlives the test's, for cleanups.
func withAdmin(t testing.TB, admin string, do func(context.Context, *pgx.Conn) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		t.Fatalf("testenv: the test database server is not there: %v", err)
	}
	defer conn.Close(ctx)
	if err := do(ctx, conn); err != nil {
		t.Fatalf("testenv: cannot prepare a test database: %v", err)
	}
}

// urlOf is the server's URL for the role and database of one name; the password is the name too.
func urlOf(t testing.TB, admin, name string) string {
	u, err := url.Parse(admin)
	if err != nil {
		t.Fatalf("testenv: %s is not a URL: %v", EnvDatabase, err)
	}
	u.User, u.Path = url.UserPassword(name, name), "/"+name
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

// localServer starts this package's own server. Nothing stops it but the end of the process, which its watchdog sees:
// the testing package offers no hook for a package's end. The result holds on to the server: once that were garbage,
// the pipe that its watchdog waits on would be closed.
var localServer = sync.OnceValues(func() (*postgres.Server, error) {
	server, err := LocalPostgres(context.Background())
	if err != nil {
		return nil, err
	}
	announce("PostgreSQL", "local server, binaries in "+server.Binaries())
	return server, nil
})

// LocalPostgres starts a throwaway server on this machine. It ends with this process, or by Stop.
func LocalPostgres(ctx context.Context) (*postgres.Server, error) { return localPostgres(ctx, false) }

func localPostgres(ctx context.Context, killable bool) (*postgres.Server, error) {
	ctx, cancel := context.WithTimeout(ctx, setUpTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "weir-test-postgres-")
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
