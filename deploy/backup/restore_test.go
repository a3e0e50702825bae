package backup

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

func made(t *testing.T, config Config) string {
	t.Helper()
	dir, err := Make(t.Context(), config, t.Output())
	testenv.Must(t, err)
	return dir
}

// Restoring a backup older than the oldest remembered deletion gives a warning.
func TestOldBackupsAreWarnedOf(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	for months, warned := range map[int]bool{1: false, 24: false, 26: true} {
		if text := (RestoreConfig{}).warnOf(Manifest{At: now.AddDate(0, -months, 0)}, now); (text != "") != warned {
			t.Errorf("of a backup %d months old it says %q", months, text)
		}
	}
}

// A backup is restored under a role of another name, with every row of
// every tenant, and with the same protection of the audit.
func TestAnotherRole(t *testing.T) {
	t.Setenv(endpoint.SharedDatabase, filled(t))
	config := Config{To: t.TempDir(), Jobs: 1, Source: Source{DataDir: t.TempDir()}}
	dir := made(t, config)

	another := postgrestest.URL(t)
	t.Setenv(endpoint.SharedDatabase, another)
	_, err := Restore(t.Context(), RestoreConfig{From: dir, Modules: []string{"tenants"}}, t.Output())
	testenv.Must(t, err)
	conn := connectTo(t, another)
	var lines int
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM tenants.audit_events`).Scan(&lines))
	if lines != 1 {
		t.Errorf("the audit has %d lines", lines)
	}
	for right, want := range map[string]bool{"SELECT": true, "INSERT": true, "DELETE": true, "UPDATE": false, "TRUNCATE": false} {
		var has bool
		testenv.Must(t, conn.QueryRow(t.Context(), `SELECT has_table_privilege('tenants.audit_events', $1)`, right).Scan(&has))
		if has != want {
			t.Errorf("%s of the audit: %t", right, has)
		}
	}
	var reduces, rewrites bool
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT has_column_privilege('tenants.audit_events', 'actor_name', 'UPDATE'),
		has_column_privilege('tenants.audit_events', 'hash', 'UPDATE')`).Scan(&reduces, &rewrites))
	if !reduces || rewrites {
		t.Errorf("columns of the audit: the actor %t, the hash %t", reduces, rewrites)
	}

	_, err = conn.Exec(t.Context(), `DROP SCHEMA tenants CASCADE`)
	testenv.Must(t, err)
	missesRow(t, dir)
	var schemas int
	testenv.Must(t, conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_namespace WHERE nspname = 'tenants'`).Scan(&schemas))
	if schemas != 0 {
		t.Error("a part of a backup stays")
	}
}

// missesRow makes a restored backup lack a copied row.
func missesRow(t *testing.T, dir string) {
	t.Helper()
	m, err := Open(dir)
	testenv.Must(t, err)
	m.Modules["tenants"].Rows["audit_events"]++
	raw, err := json.Marshal(m)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(filepath.Join(dir, ManifestName), raw, 0o600))
	_, err = Restore(t.Context(), RestoreConfig{From: dir, Modules: []string{"tenants"}}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "audit_events has 1 rows, not the 2") {
		t.Errorf("with a row less: %v", err)
	}
}

// Objects created in a schema after it was found empty stay untouched.
func TestSchemaOfOthersStays(t *testing.T) {
	url := postgrestest.URL(t)
	t.Setenv(endpoint.SharedDatabase, url)
	conn := connectTo(t, url)
	r := &restoration{dir: t.TempDir(), out: t.Output(), program: "false", manifest: Manifest{Modules: map[string]Module{"tenants": {Schema: "tenants"}}}}
	testenv.Must(t, r.isEmpty(t.Context(), "tenants"))
	for _, step := range []struct{ statement, want string }{
		{`CREATE SCHEMA tenants CREATE TABLE theirs ()`, "not empty"},
		{`DROP TABLE tenants.theirs; COMMENT ON SCHEMA tenants IS 'restore unfinished, begun by another'`, "part of a backup"},
	} {
		_, err := conn.Exec(t.Context(), step.statement)
		testenv.Must(t, err)
		if err := r.restoreModule(t.Context(), "tenants"); err == nil || !strings.Contains(err.Error(), step.want) {
			t.Errorf("after %s: %v", step.statement, err)
		}
		var stays bool
		testenv.Must(t, conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'tenants')`).Scan(&stays))
		if !stays {
			t.Fatalf("after %s it is gone", step.statement)
		}
	}
}
