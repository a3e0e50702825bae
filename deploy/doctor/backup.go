package doctor

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/shared/pg"
)

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
