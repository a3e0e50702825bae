package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// A File is open for reading and writing. Safe for concurrent use; a
// read that has begun is finished before Close closes the file.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer

	Truncate(size int64) error
	Sync() error // returns once all that was written survives a power cut
}

// An Entry is a file or directory within a directory.
type Entry struct {
	Name     string
	Dir      bool
	Size     int64
	Modified time.Time
}

// An FS holds files by their paths. Its errors are those of package os.
type FS interface {
	Open(name string) (File, error)
	Create(name string) (File, error) // empty, also if there is one
	List(dir string) ([]Entry, error) // in order of names
	Rename(from, to string) error
	RemoveAll(name string) error
	MakeDir(name string) error // and its parents
	SyncDir(name string) error // makes creations, renames and removals in it survive a power cut
	Stamp(name string, modified time.Time) error
}

// Read returns the content of a file.
func Read(fsys FS, name string) ([]byte, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.NewSectionReader(file, 0, 1<<62))
}

// Replace leaves a file with a content, or as it was: also after a power
// cut, and on disk when it returns.
func Replace(fsys FS, dir, name string, content []byte) error {
	next := dir + "/" + name + ".new"
	if err := write(fsys, next, content); err != nil {
		return errors.Join(err, fsys.RemoveAll(next))
	}
	if err := fsys.Rename(next, dir+"/"+name); err != nil {
		return errors.Join(err, fsys.RemoveAll(next))
	}
	return fsys.SyncDir(dir)
}

func write(fsys FS, name string, content []byte) error {
	file, err := fsys.Create(name)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(content, 0)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// ListOrNone is List, with nothing for a directory that is missing.
func ListOrNone(fsys FS, dir string) ([]Entry, error) {
	entries, err := fsys.List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return entries, err
}

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
