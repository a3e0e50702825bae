package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/backup"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/pg"
)

// Ages from which on checks and seals of the books are late.
const (
	lateCheck  = 10 * time.Minute
	staleCheck = time.Hour
	lateSeal   = 30 * time.Minute
)

// books checks the progress of the running checks and the chains, and
// compares the latest of both with the log.
func (c *moduleChecker) books(ctx context.Context) {
	if len(c.broker.seen.Topics) == 0 {
		return // the log is needed
	}
	var found ledger.Condition
	ok := c.look(ctx, "books", c.name, "Look at the ledger's log, and run ledger-verify.", func(ctx context.Context) (err error) {
		config := c.services.Ledger
		config.Brokers, config.BrokerAccess = c.broker.brokers, c.broker.signIn
		found, err = ledger.Examine(ctx, config, c.pool, c.now().Add(-lateSeal))
		return err
	})
	if !ok {
		return
	}
	before := len(c.report.Findings)
	for _, violation := range found.Violations {
		c.report.add(Fail, "books", c.name, fmt.Sprintf("it does not hold that %s: %s", violation.Invariant, violation.Detail),
			"Run ledger-verify, which compares everything; change nothing by hand before it is understood.")
	}
	c.checked(found)
	if found.Overdue {
		c.report.add(Fail, "books", "seals", fmt.Sprintf("an hour is not sealed that ended more than %s ago; the last is %s", lateSeal, when(found.Sealed)),
			"Look in the ledger's log for what keeps it from sealing an hour, and at the lag of ledger.quota.")
	}
	if len(c.report.Findings) == before {
		c.report.add(OK, "books", c.name, fmt.Sprintf("all is checked in %d partitions, sealed through: %s", len(found.Verified), when(found.Sealed)), "")
	}
}

// checked reports how long the oldest unchecked booking waits.
func (c *moduleChecker) checked(found ledger.Condition) {
	waits := c.now().Sub(found.Unchecked)
	if found.Unchecked.IsZero() || waits < lateCheck {
		return
	}
	level := Warn
	if waits >= staleCheck {
		level = Fail
	}
	c.report.add(level, "books", "checks", fmt.Sprintf("what was booked %s ago is not checked yet", waits.Round(time.Second)),
		"Look in the ledger's log for what keeps it from checking the books.")
}

func when(at time.Time) string {
	if at.IsZero() {
		return "no hour yet"
	}
	return at.UTC().Format(time.RFC3339)
}

// backups checks the newest backup: its age, and whether all of its
// files are there.
func (c *hostChecker) backups() {
	if c.BackupDir == "" {
		return
	}
	const fix = "Look why the last backup was not made, and make one: weir backup."
	newest, seen, err := newestBackup(c.BackupDir)
	switch age := c.now().Sub(newest).Round(time.Minute); {
	case err != nil:
		c.report.add(Fail, "backup", c.BackupDir, err.Error(), fix)
	case newest.IsZero():
		c.report.add(Fail, "backup", c.BackupDir, "there is no backup", fix)
	case age > c.BackupAge:
		c.report.add(Fail, "backup", c.BackupDir, "the newest is "+age.String()+" old, it should be "+c.BackupAge.String()+" at most", fix)
	default:
		c.report.add(OK, "backup", c.BackupDir, "the newest is "+age.String()+" old"+seen, "")
	}
}

// newestBackup returns the time of the newest backup of weir backup or,
// without any, of the newest file.
func newestBackup(dir string) (at time.Time, seen string, err error) {
	folders, err := backup.List(dir)
	if err != nil || len(folders) == 0 {
		at, err = newestFile(dir)
		return at, "", err
	}
	last := folders[len(folders)-1]
	m, err := backup.Open(last)
	if err == nil {
		err = m.CheckFiles(last)
	}
	return m.At, fmt.Sprintf(", of %d modules", len(m.Modules)), err
}

// newestFile returns when the newest file was written; zero without any.
func newestFile(dir string) (newest time.Time, err error) {
	err = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.ModTime().After(newest) && info.Size() > 0 {
			newest = info.ModTime()
		}
		return err
	})
	return newest, err
}

// restored reports whether a module was restored from a backup, and completely.
func (c *moduleChecker) restored(ctx context.Context) {
	var comment string
	ok := c.look(ctx, "restore", c.name, "Look at the role's rights.", func(ctx context.Context) error {
		return c.pool.QueryRow(ctx, `SELECT coalesce(max(obj_description(oid, 'pg_namespace')), '')
			FROM pg_namespace WHERE nspname = $1`, c.schema.Name).Scan(&comment)
	})
	switch {
	case !ok:
	case strings.HasPrefix(comment, pg.Unfinished):
		c.report.add(Fail, "restore", c.name, comment,
			fmt.Sprintf("Drop what there is of it (DROP SCHEMA %s CASCADE), and restore it again: weir restore.", c.schema.Name))
	case strings.HasPrefix(comment, backup.Restored):
		c.report.add(OK, "restore", c.name, comment, "")
	}
}
