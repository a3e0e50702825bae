package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the file at path by text, durably.
func Write(path, text string, mode fs.FileMode) error {
	return WriteFrom(path, mode, func(file io.Writer) error {
		_, err := io.WriteString(file, text)
		return err
	})
}

// WriteFrom is Write for what is too large for memory: write gets the
// new file.
func WriteFrom(path string, mode fs.FileMode, write func(file io.Writer) error) error {
	file, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	err = errors.Join(write(file), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a folder durable: those of new files and
// those that changed.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
