package postgres

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// dir is a directory that the server's account can reach, unlike t.TempDir when the tests run as root.
func dir(t *testing.T) string {
	t.Helper()
	d, err := os.MkdirTemp("", "weir-postgres-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	cfg.Logger = slog.New(slog.DiscardHandler)
	s, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func query[T any](t *testing.T, url, sql string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	var v T
	if err := conn.QueryRow(ctx, sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// The role that services log in with is not a superuser and may not pass row level security.
func TestRoleIsOrdinary(t *testing.T) {
	s := start(t, Config{Dir: dir(t), Throwaway: true})
	defer s.Stop(t.Context())
	if query[bool](t, s.URL(), "SELECT rolsuper OR rolbypassrls OR rolcreaterole FROM pg_roles WHERE rolname = current_user") {
		t.Error("the role has powers that a service must not have")
	}
	if got := query[string](t, s.URL(), "SELECT current_user || '@' || current_database()"); got != "weir@weir" {
		t.Errorf("connected as %s", got)
	}
}
