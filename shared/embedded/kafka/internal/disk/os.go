package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// OS is the machine's file system. Only the owner can read its files.
type OS struct{}

var _ FS = OS{}

func (OS) Open(name string) (File, error)   { return open(name, os.O_RDWR) }
func (OS) Create(name string) (File, error) { return open(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC) }

func open(name string, flag int) (File, error) {
	file, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

func (OS) List(dir string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(found))
	for _, f := range found {
		info, err := f.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{f.Name(), f.IsDir(), info.Size(), info.ModTime()})
	}
	return entries, nil
}

func (OS) Rename(from, to string) error                { return os.Rename(from, to) }
func (OS) RemoveAll(name string) error                 { return os.RemoveAll(name) }
func (OS) MakeDir(name string) error                   { return os.MkdirAll(name, 0o700) }
func (OS) Stamp(name string, modified time.Time) error { return os.Chtimes(name, modified, modified) }

func (OS) SyncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

type osFile struct{ *os.File }

// Sync also fails for a file that was removed: what is written there is
// lost with the process.
func (f osFile) Sync() error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if stat, known := info.Sys().(*syscall.Stat_t); known && stat.Nlink == 0 {
		return fmt.Errorf("%s was removed: %w", f.Name(), fs.ErrNotExist)
	}
	return f.File.Sync()
}
