package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/continuous"
	"github.com/weirlog/weir/shared/pg"
)

// backups checks what is in the directory of backups: a continuous one,
// copies, or files of another tool.
func (c *hostChecker) backups() {
	if c.BackupDir == "" {
		return
	}
	status, err := continuous.ReadStatus(c.BackupDir)
	copies, unreadable := backup.List(c.BackupDir)
	if err == nil {
		c.continuous(status)
	}
	if len(copies) > 0 || unreadable != nil || errors.Is(err, fs.ErrNotExist) {
		c.copies()
	} else if err != nil {
		c.report.add(Fail, "backup", c.BackupDir, err.Error(), "Look at the log of weir backup continuous.")
	}
}

// Limits of a continuous backup.
const (
	backupStands = 10 * time.Minute // without a sign of life
	archiveLags  = 10 * time.Minute
	unverified   = 3 * 24 * time.Hour
)

// continuous checks whether a continuous backup works, how far it is, and
// whether it was restored.
func (c *hostChecker) continuous(s continuous.Status) {
	const fix = "Look at the log of weir backup continuous; deploy/docs/backup.md says what it needs."
	age := func(at time.Time) time.Duration { return c.now().Sub(at).Round(time.Minute) }
	before := len(c.report.Findings)
	fail := func(level Level, seen string) { c.report.add(level, "backup", c.BackupDir, seen, fix) }
	if age(s.At) > backupStands {
		fail(Fail, "weir backup continuous has not worked for "+age(s.At).String()+
			": the server keeps what is not archived, as far as max_slot_wal_keep_size lets it")
	} else if age(s.Archived) > archiveLags {
		fail(Fail, "the log is archived up to "+s.Archived.Format(time.RFC3339)+" only")
	}
	switch {
	case s.Base.IsZero():
		fail(Fail, "there is no base backup")
	case age(s.Base) > c.BackupAge:
		fail(Fail, "the newest base backup is "+age(s.Base).String()+" old, it should be "+c.BackupAge.String()+" at most")
	}
	switch {
	case s.Verified.IsZero():
		fail(Warn, "no base backup was restored to verify it")
	case age(s.Verified) > unverified:
		fail(Warn, "no base backup was restored to verify it for "+age(s.Verified).String())
	}
	for _, part := range sorted(s.Failures) {
		fail(Warn, fmt.Sprintf("the part %s fails, last at %s", part, s.Failures[part].Format(time.RFC3339)))
	}
	if len(c.report.Findings) == before {
		c.report.add(OK, "backup", c.BackupDir, fmt.Sprintf("archived up to %s; the newest base backup is %s old, and was restored %s ago",
			s.Archived.Format(time.RFC3339), age(s.Base), age(s.Verified)), "")
	}
}

// unknownBackup is about servers that nobody is known to back up.
func (c *databaseChecker) unknownBackup(all servers) {
	for _, address := range sorted(all) {
		archiver := all[address].archiver
		switch {
		case archiver.Fails:
			c.report.add(Fail, "backup", address, "archive_command fails, and last worked at "+last(archiver.Last)+": the disk fills", "Look at the server's log.")
		case archiver.Last != nil:
			c.report.add(OK, "backup", address, "the server archives its log, at "+last(archiver.Last)+" last", "")
		case c.BackupDir == "":
			c.report.add(Warn, "backup", address, "no backup is known", "Run weir backup continuous, and name its directory in WEIR_BACKUP_DIR. "+
				"Where a provider backs the server up, or a tool that uses no archive_command, only it can tell.")
		}
	}
}

// An archiver is what a server says of its archive_command.
type archiver struct {
	Last  *time.Time // nil: never, or there is none
	Fails bool
}

func last(at *time.Time) string {
	if at == nil {
		return "no time"
	}
	return at.UTC().Format(time.RFC3339)
}

// copies checks the newest copy: its age, and whether all of its files
// are there.
func (c *hostChecker) copies() {
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
