package doctor

import (
	"io/fs"
	"path/filepath"
	"time"
)

// backups looks at the age of the newest file in the directory of backups.
func (e *examination) backups() {
	if e.BackupDir == "" {
		return
	}
	const fix = "Look why the last backup was not made, and make one."
	newest, err := newestFile(e.BackupDir)
	switch age := e.now().Sub(newest).Round(time.Minute); {
	case err != nil:
		e.report.add(Fail, "backup", e.BackupDir, err.Error(), fix)
	case newest.IsZero():
		e.report.add(Fail, "backup", e.BackupDir, "there is no backup", fix)
	case age > e.BackupAge:
		e.report.add(Fail, "backup", e.BackupDir, "the newest is "+age.String()+" old, it should be "+e.BackupAge.String()+" at most", fix)
	default:
		e.report.add(OK, "backup", e.BackupDir, "the newest is "+age.String()+" old", "")
	}
}

// newestFile is when the youngest file was written; zero where there is none.
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
