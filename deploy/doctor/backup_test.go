package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/shared/testenv"
)

// backedUp writes the status of a continuous backup that works, changed.
func backedUp(t *testing.T, dir string, change func(*continuous.Status)) {
	t.Helper()
	now := time.Now()
	status := continuous.Status{At: now, Base: now, Archived: now, Verified: now}
	change(&status)
	text, err := json.Marshal(status)
	testenv.Must(t, err)
	testenv.Must(t, os.WriteFile(filepath.Join(dir, "status.json"), text, 0o600))
}

// with plants the status of a continuous backup.
func with(change func(*continuous.Status)) func(*testing.T, *installation, *Config) {
	return func(t *testing.T, _ *installation, c *Config) {
		c.BackupDir = t.TempDir()
		backedUp(t, c.BackupDir, change)
	}
}

func ago(hours int) time.Time { return time.Now().Add(-time.Duration(hours) * time.Hour) }

var backupFaults = []fault{
	{"old backup", func(t *testing.T, _ *installation, c *Config) {
		c.BackupDir = t.TempDir()
		file := filepath.Join(c.BackupDir, "ledger.dump")
		testenv.Must(t, os.WriteFile(file, []byte("x"), 0o600))
		then := time.Now().Add(-50 * time.Hour)
		testenv.Must(t, os.Chtimes(file, then, then))
	}, Finding{Check: "backup", Level: Fail, Seen: "50h0m0s old"}},
	{"no backup is known", func(_ *testing.T, _ *installation, c *Config) { c.BackupDir = "" }, Finding{Check: "backup", Level: Warn, Seen: "no backup is known"}},
	{"no backup", func(t *testing.T, _ *installation, c *Config) { c.BackupDir = t.TempDir() }, Finding{Check: "backup", Level: Fail, Seen: "no backup"}},
	{"stopped continuous backup", with(func(s *continuous.Status) { s.At, s.Archived = ago(5), ago(5) }),
		Finding{Check: "backup", Level: Fail, Seen: "has not worked for 5h0m0s"}},
	{"log that is not archived", with(func(s *continuous.Status) { s.Archived = ago(1) }), Finding{Check: "backup", Level: Fail, Seen: "archived up to"}},
	{"no base backup", with(func(s *continuous.Status) { s.Base = time.Time{} }), Finding{Check: "backup", Level: Fail, Seen: "no base backup"}},
	{"old base backup", with(func(s *continuous.Status) { s.Base = ago(30) }), Finding{Check: "backup", Level: Fail, Seen: "30h0m0s old"}},
	{"backup that was never restored", with(func(s *continuous.Status) { s.Verified = time.Time{} }), Finding{Check: "backup", Level: Warn, Seen: "no base backup was restored"}},
	{"backup that was not restored for long", with(func(s *continuous.Status) { s.Verified = ago(100) }), Finding{Check: "backup", Level: Warn, Seen: "for 100h0m0s"}},
	{"backup that fails", with(func(s *continuous.Status) { s.Failures = map[string]time.Time{"verify": time.Now()} }),
		Finding{Check: "backup", Level: Warn, Seen: "the part verify fails"}},
}
