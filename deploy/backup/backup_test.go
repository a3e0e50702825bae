package backup

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

func connectTo(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	testenv.Must(t, err)
	t.Cleanup(func() { conn.Close(context.Background()) })
	_, err = conn.Exec(t.Context(), `SET weir.organization = '*'`)
	testenv.Must(t, err)
	return conn
}

// filled returns the address of a database with every module's schema and
// a line of the audit. Its options and secrets are hard for our programs.
func filled(t *testing.T) string {
	t.Helper()
	url := postgrestest.URL(t)
	for _, name := range endpoint.Modules {
		pool, err := pg.OpenMigrated(t.Context(), url, endpoint.Schemas[name].Name, endpoint.Schemas[name].Migrations...)
		testenv.Must(t, err)
		pool.Close()
	}
	_, err := connectTo(t, url).Exec(t.Context(), `INSERT INTO tenants.audit_events
		(organization, sequence, at, action, actor_kind, actor, actor_name, role, address, client, request, target_kind, target, target_name, before, after, stream, version, position, hash)
		VALUES ('org_1', 1, now(), '', '', '', '', '', '', '', '', '', '', '', '', '', '', 1, 1, repeat('0', 64))`)
	testenv.Must(t, err)
	separator := "?"
	if strings.Contains(url, "?") {
		separator = "&"
	}
	return url + separator + "options=-c%20lock_timeout%3D9s&sslpassword=unused"
}

// A whole backup is returned even if older ones can't be removed.
func TestOlderBackupsStay(t *testing.T) {
	t.Setenv(endpoint.SharedDatabase, filled(t))
	config := Config{To: filepath.Join(t.TempDir(), "backups"), Keep: 1, Jobs: 1, Source: Source{DataDir: t.TempDir()}}
	config.Clock = func() time.Time {
		if folders, err := List(config.To); err == nil && len(folders) > 0 {
			testenv.Must(t, os.Rename(config.To, config.To+"-elsewhere"))
		}
		return time.Now()
	}
	dir, err := Make(t.Context(), config, t.Output())
	if dir == "" || err == nil || !strings.Contains(err.Error(), "the backup is whole") {
		t.Errorf("%q, %v", dir, err)
	}
}
