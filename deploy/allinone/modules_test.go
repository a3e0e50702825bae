package allinone

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// on is given to modules whose broker does not answer: New waits for none.
func on(databaseURL string) given {
	return given{
		databaseURL: httpapi.Secret(databaseURL), brokers: []string{"127.0.0.1:1"}, metrics: telemetry.New(),
		operator: httpapi.Secret("weirsvc_" + strings.Repeat("0123456789abcdef", 3)),
	}
}

func modules(t *testing.T) Modules {
	t.Helper()
	read, err := ModulesFromEnvironment()
	testenv.Must(t, err)
	return read
}

// If the last module can't start, the ones before it keep no connection
// to a database that is about to stop.
func TestBuildLeavesNothingBehind(t *testing.T) {
	database := postgrestest.URL(t)
	shared := on(database)
	shared.operator = "not a token"
	built, err := modules(t).build(t.Context(), shared, slog.New(slog.DiscardHandler))
	if err == nil || built != nil {
		t.Fatalf("build = %v, %v, want an error about the operator's token", built, err)
	}
	conn, err := pgx.Connect(t.Context(), database)
	testenv.Must(t, err)
	defer conn.Close(t.Context())
	testenv.Eventually(t, func() error {
		var others int
		err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&others)
		if err == nil && others > 0 {
			err = fmt.Errorf("%d connections are left", others)
		}
		return err
	})
	var schemas int
	err = conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname IN ('ingest', 'ledger', 'grouping')`).Scan(&schemas)
	if err != nil || schemas != 3 {
		t.Errorf("%d modules had got as far as their database, %v, want the 3 before the last", schemas, err)
	}
}

// Every module, and the whole process, refuses a role that bypasses row
// level security, in one line that names the role and the remedy: with
// it, one forgotten condition would show one tenant's rows to another.
func TestSuperuserIsRefused(t *testing.T) {
	server, err := postgrestest.Start(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() { _ = server.Stop(context.WithoutCancel(t.Context())) })
	admin, err := url.Parse(server.AdminURL())
	testenv.Must(t, err)
	refused := func(who string, err error) {
		if err == nil {
			t.Errorf("%s starts as a superuser", who)
			return
		}
		if line := err.Error(); strings.Contains(line, "\n") || !strings.Contains(line, `"`+admin.User.Username()+`"`) || !strings.Contains(line, "CREATE ROLE") {
			t.Errorf("%s says %q, want one line with role %q and the way out", who, line, admin.User.Username())
		}
	}
	for name, start := range modules(t).makers(t.Context(), on(server.AdminURL()), slog.New(slog.DiscardHandler)) {
		_, err := start()
		refused(string(name), err)
	}
	_, err = New(t.Context(), Config{
		Listen: "localhost:0", DataDir: t.TempDir(), DatabaseURL: httpapi.Secret(server.AdminURL()), LogPartitions: 1, Modules: modules(t),
	}, slog.New(slog.DiscardHandler))
	refused("the process", err)
}
