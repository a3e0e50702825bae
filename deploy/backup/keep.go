package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// List returns the folders of whole backups in a directory, oldest first.
func List(dir string) (folders []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		folder := filepath.Join(dir, entry.Name())
		if !entry.IsDir() || !isName(entry.Name()) {
			continue
		}
		if _, err := os.Stat(filepath.Join(folder, ManifestName)); err == nil {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders, err
}

// isName reports whether a folder has a name given by Make: nothing
// else is ever removed.
func isName(name string) bool {
	at, ours := strings.CutPrefix(name, prefix)
	_, err := time.Parse(stamp, at)
	return ours && err == nil
}

// abandoned is the age from which on an unfinished backup is abandoned.
const abandoned = 24 * time.Hour

// forget removes surplus backups and abandoned ones.
func (w *work) forget(now time.Time) error {
	if w.Keep <= 0 {
		return nil
	}
	folders, err := List(w.To)
	if err != nil {
		return err
	}
	gone := folders[:max(0, len(folders)-w.Keep)]
	entries, err := os.ReadDir(w.To)
	for _, entry := range entries {
		name, unfinished := strings.CutSuffix(entry.Name(), partial)
		if unfinished && isName(name) && isOlder(entry, now.Add(-abandoned)) {
			gone = append(gone, filepath.Join(w.To, entry.Name()))
		}
	}
	for _, folder := range gone {
		fmt.Fprintf(w.out, "removing  %s\n", folder)
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}

func isOlder(entry fs.DirEntry, than time.Time) bool {
	info, err := entry.Info()
	return err == nil && info.ModTime().Before(than)
}
