package disk

import (
	"errors"
	"io"
	"io/fs"
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
