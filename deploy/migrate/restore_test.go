package migrate_test

import (
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/migrate"
	"github.com/weirlog/weir/deploy/provision"
)

// A restored schema belongs to its owner alone until weir migrate gives
// the serving role its rights.
func TestRestoredIsServed(t *testing.T) {
	i, ledger := provisioned(t), migrate.Config{Modules: []string{"ledger"}}
	must(t, migrate.Run(t.Context(), migrate.Config{}, t.Output()))
	folder, err := backup.Make(t.Context(), backup.Config{To: t.TempDir(), Jobs: 1, Source: backup.Source{DataDir: t.TempDir()}}, t.Output())
	must(t, err)
	must(t, i.as(t, provision.MigrateDatabaseURL("ledger"), "ledger", `DROP SCHEMA ledger CASCADE`))
	_, err = backup.Restore(t.Context(), backup.RestoreConfig{From: folder, Modules: ledger.Modules}, t.Output())
	must(t, err)
	if err := i.as(t, provision.DatabaseURL("ledger"), "ledger", `SELECT FROM ledger.erasures`); err == nil || !strings.Contains(err.Error(), "42501") {
		t.Errorf("before weir migrate: %v", err)
	}
	must(t, migrate.Run(t.Context(), ledger, t.Output()))
	i.compare(t, "ledger")
}
