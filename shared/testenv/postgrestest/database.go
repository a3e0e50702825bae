package postgrestest

import (
	"context"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

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
	config.Dir, config.Cache, config.Throwaway = dir, filepath.Join(testenv.Common, "weir-postgres-binaries"), true
	config.Logger = slog.New(slog.DiscardHandler)
	server, err := postgres.Start(ctx, config)
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return server, nil
}

// Filled is URL for a database filled by fill, once per server and name,
// and copied for each test. All copies have the same owner. So the name
// must cover everything that fill depends on. Serving is the address for
// a role beside the owner, which has only the rights that fill grants.
func Filled(t testing.TB, name string, fill func(ctx context.Context, url string) error) string {
	t.Helper()
	template := template{admin: adminURL(t), name: "weir_template_" + name, fill: fill}
	once, _ := templates.LoadOrStore(template.admin+template.name, sync.OnceValue(template.provide))
	if err := once.(func() error)(); err != nil {
		t.Fatalf("testenv: %s: %v", template.name, err)
	}
	return template.copy(t)
}

// servingSuffix ends the name of the role beside the owner.
const servingSuffix = "_serving"

// Serving is the address of a database of Filled for the role beside its owner.
func Serving(owner string) string {
	u, err := url.Parse(owner)
	if err != nil {
		panic("no URL of Filled")
	}
	role := u.User.Username() + servingSuffix
	u.User = url.UserPassword(role, role)
	return u.String()
}

// Owner is the address whose Serving is the given one; an
// owner's address stays.
func Owner(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		panic("no URL of Filled")
	}
	role := strings.TrimSuffix(u.User.Username(), servingSuffix)
	u.User = url.UserPassword(role, role)
	return u.String()
}

// templates that this process has provided.
var templates sync.Map

// A template is a database that is copied instead of filled again:
// migrating one takes longer than most tests.
type template struct {
	admin, name string
	fill        func(ctx context.Context, url string) error
}

// provide makes a missing or unfinished template. Packages test in
// parallel: one makes it, the others wait. They check in a separate
// statement: one that waited for the lock would see the state before it.
func (p template) provide() error {
	return asAdmin(context.Background(), p.admin, func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtextextended($1, 0))`, p.name); err != nil {
			return err
		}
		if err := p.ensure(ctx, conn); err != nil {
			return err // and the connection ends, which gives the lock back
		}
		_, err := conn.Exec(ctx, `SELECT pg_advisory_unlock(hashtextextended($1, 0))`, p.name)
		return err
	})
}

func (p template) ensure(ctx context.Context, conn *pgx.Conn) error {
	finished := false
	query := `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND datistemplate)`
	if err := conn.QueryRow(ctx, query, p.name).Scan(&finished); err != nil || finished {
		return err
	}
	return p.make(ctx, conn)
}

func (p template) make(ctx context.Context, conn *pgx.Conn) error {
	err := execAll(ctx, conn, "DROP DATABASE IF EXISTS "+p.name, "DROP ROLE IF EXISTS "+p.name+", "+p.name+servingSuffix)
	if err != nil {
		return err
	}
	if err := create(ctx, conn, p.name); err != nil {
		return err
	}
	if err := createRole(ctx, conn, p.name+servingSuffix); err != nil {
		return err
	}
	if err := p.fill(ctx, urlOf(p.admin, p.name, p.name)); err != nil {
		return err
	}
	return execAll(ctx, conn, fmt.Sprintf("ALTER DATABASE %s ALLOW_CONNECTIONS false IS_TEMPLATE true", p.name))
}

func (p template) copy(t testing.TB) string {
	t.Helper()
	name := newName()
	withAdmin(t, p.admin, func(ctx context.Context, conn *pgx.Conn) error {
		return createDatabase(ctx, conn, name, p.name, p.name)
	})
	t.Cleanup(func() { drop(t, p.admin, "DATABASE "+name+" WITH (FORCE)") })
	return urlOf(p.admin, p.name, name)
}

// withAdmin runs do on a connection that may create databases. Its
// context outlives the test's, for cleanups.
func withAdmin(t testing.TB, admin string, do func(context.Context, *pgx.Conn) error) {
	t.Helper()
	if err := asAdmin(context.WithoutCancel(t.Context()), admin, do); err != nil {
		t.Fatalf("testenv: %v", err)
	}
}

func asAdmin(ctx context.Context, admin string, do func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	conn, err := admins.take(ctx, admin)
	if err != nil {
		return fmt.Errorf("the test database server is not there: %w", err)
	}
	if err := do(ctx, conn); err != nil {
		conn.Close(ctx)
		return fmt.Errorf("cannot prepare a test database: %w", err)
	}
	admins.give(ctx, admin, conn)
	return nil
}

// admins are this process's connections that may create databases.
var admins = idleConns{of: map[string][]*pgx.Conn{}}

// idleConns keeps connections, by their address, for reuse: a new one
// costs the server as much as copying a database.
type idleConns struct {
	mu sync.Mutex
	of map[string][]*pgx.Conn
}

// maxIdle bounds the connections kept for each address.
const maxIdle = 2

// take returns a connection that works: a test may have killed the
// server since the last use.
func (c *idleConns) take(ctx context.Context, address string) (*pgx.Conn, error) {
	for conn := c.pop(address); conn != nil; conn = c.pop(address) {
		if conn.Ping(ctx) == nil {
			return conn, nil
		}
		conn.Close(ctx)
	}
	return pgx.Connect(ctx, address)
}

func (c *idleConns) pop(address string) *pgx.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	idle := c.of[address]
	if len(idle) == 0 {
		return nil
	}
	last := len(idle) - 1
	c.of[address] = idle[:last]
	return idle[last]
}

func (c *idleConns) give(ctx context.Context, address string, conn *pgx.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.of[address]) >= maxIdle {
		conn.Close(ctx)
		return
	}
	c.of[address] = append(c.of[address], conn)
}

// secretOf is PostgreSQL's stored form of a role's password, which is its
// name, with one iteration instead of 4096: tests sign in thousands of times.
func secretOf(name string) string {
	salt := []byte("a salt for tests")
	salted, err := pbkdf2.Key(sha256.New, name, salt, 1, sha256.Size)
	if err != nil {
		panic(err) // only a key of an impossible length fails
	}
	stored := sha256.Sum256(digest(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$1:%s$%s:%s", encode(salt), encode(stored[:]), encode(digest(salted, "Server Key")))
}

func digest(key []byte, text string) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

// Superuser runs statements on URL's server as a superuser, such as
// granting rights to another role.
func Superuser(t testing.TB, statements ...string) {
	t.Helper()
	withAdmin(t, adminURL(t), func(ctx context.Context, conn *pgx.Conn) error { return execAll(ctx, conn, statements...) })
}
