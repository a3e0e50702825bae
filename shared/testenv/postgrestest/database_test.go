package postgrestest_test

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// Each test has a database of its own, whose owner is bound by
// row level security.
func TestDatabaseIsFreshAndItsRoleOrdinary(t *testing.T) {
	first, second := postgrestest.URL(t), postgrestest.URL(t)
	if first == second {
		t.Fatal("two databases with one address")
	}
	exec(t, first, "CREATE TABLE only_here (id int)")
	conn := connect(t, second)
	var found, super bool
	err := conn.QueryRow(t.Context(), `SELECT to_regclass('only_here') IS NOT NULL, rolsuper OR rolbypassrls
		FROM pg_roles WHERE rolname = current_user`).Scan(&found, &super)
	if err != nil || found || super {
		t.Errorf("found %v, super %v, %v; want an empty database and an ordinary role", found, super, err)
	}
}

// Copies of a filled database are independent, their owner is ordinary,
// and it is filled once.
func TestDatabaseIsCopied(t *testing.T) {
	name, fills := strings.ToLower(rand.Text()), 0
	fill := func(ctx context.Context, url string) error {
		fills++
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "CREATE TABLE filled (id int)")
		return errors.Join(err, conn.Close(ctx))
	}
	first, second := postgrestest.Filled(t, name, fill), postgrestest.Filled(t, name, fill)
	exec(t, first, "INSERT INTO filled VALUES (1)")
	var rows int
	var super bool
	err := connect(t, second).QueryRow(t.Context(), `SELECT (SELECT count(*) FROM filled), rolsuper OR rolbypassrls
		FROM pg_roles WHERE rolname = current_user`).Scan(&rows, &super)
	if err != nil || rows != 0 || super || fills != 1 {
		t.Errorf("rows %d, super %v, filled %d times, %v; want the empty table of one filling and an ordinary role", rows, super, fills, err)
	}
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	testenv.Must(t, err)
	t.Cleanup(func() { conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	if _, err := connect(t, url).Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// Each fault has its effect, and ends.
func TestFaults(t *testing.T) {
	db := postgrestest.Faulty(t)
	exec(t, db.URL, "CREATE TABLE kept AS SELECT 1 AS n")
	db.TryEach(t, func(ctx context.Context) error {
		conn, err := pgx.Connect(ctx, db.URL)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		var n int
		return conn.QueryRow(ctx, "SELECT n FROM kept").Scan(&n)
	})
}
