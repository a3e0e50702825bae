package postgrestest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

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
