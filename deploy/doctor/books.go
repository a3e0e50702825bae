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
func (e *examination) books(ctx context.Context, o opened) {
	if len(e.seen.Topics) == 0 {
		return // the log is needed
	}
	var found ledger.Condition
	ok := e.look(ctx, "books", o.name, "Look at the ledger's log, and run ledger-verify.", func(ctx context.Context) (err error) {
		config := e.services.Ledger
		config.Brokers, config.BrokerAccess = e.brokers, e.signIn
		found, err = ledger.Examine(ctx, config, o.pool, e.now().Add(-lateSeal))
		return err
	})
	if !ok {
		return
	}
	before := len(e.report.Findings)
	for _, violation := range found.Violations {
		e.report.add(Fail, "books", o.name, fmt.Sprintf("it does not hold that %s: %s", violation.Invariant, violation.Detail),
			"Run ledger-verify, which compares everything; change nothing by hand before it is understood.")
	}
	e.checked(found)
	if found.Overdue {
		e.report.add(Fail, "books", "seals", fmt.Sprintf("an hour is not sealed that ended more than %s ago; the last is %s", lateSeal, when(found.Sealed)),
			"Look in the ledger's log for what keeps it from sealing an hour, and at the lag of ledger.quota.")
	}
	if len(e.report.Findings) == before {
		e.report.add(OK, "books", o.name, fmt.Sprintf("all is checked in %d partitions, sealed through: %s", len(found.Verified), when(found.Sealed)), "")
	}
}

// checked reports how long the oldest unchecked booking waits.
func (e *examination) checked(found ledger.Condition) {
	waits := e.now().Sub(found.Unchecked)
	if found.Unchecked.IsZero() || waits < lateCheck {
		return
	}
	level := Warn
	if waits >= staleCheck {
		level = Fail
	}
	e.report.add(level, "books", "checks", fmt.Sprintf("what was booked %s ago is not checked yet", waits.Round(time.Second)),
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
func (e *examination) backups() {
	if e.BackupDir == "" {
		return
	}
	const fix = "Look why the last backup was not made, and make one: weir backup."
	newest, seen, err := newestBackup(e.BackupDir)
	switch age := e.now().Sub(newest).Round(time.Minute); {
	case err != nil:
		e.report.add(Fail, "backup", e.BackupDir, err.Error(), fix)
	case newest.IsZero():
		e.report.add(Fail, "backup", e.BackupDir, "there is no backup", fix)
	case age > e.BackupAge:
		e.report.add(Fail, "backup", e.BackupDir, "the newest is "+age.String()+" old, it should be "+e.BackupAge.String()+" at most", fix)
	default:
		e.report.add(OK, "backup", e.BackupDir, "the newest is "+age.String()+" old"+seen, "")
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
func (e *examination) restored(ctx context.Context, o opened) {
	var comment string
	ok := e.look(ctx, "restore", o.name, "Look at the role's rights.", func(ctx context.Context) error {
		return o.pool.QueryRow(ctx, `SELECT coalesce(max(obj_description(oid, 'pg_namespace')), '')
			FROM pg_namespace WHERE nspname = $1`, o.schema.Name).Scan(&comment)
	})
	switch {
	case !ok:
	case strings.HasPrefix(comment, pg.Unfinished):
		e.report.add(Fail, "restore", o.name, comment,
			fmt.Sprintf("Drop what there is of it (DROP SCHEMA %s CASCADE), and restore it again: weir restore.", o.schema.Name))
	case strings.HasPrefix(comment, backup.Restored):
		e.report.add(OK, "restore", o.name, comment, "")
	}
}
