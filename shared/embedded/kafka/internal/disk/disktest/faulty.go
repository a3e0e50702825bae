package disktest

import (
	"errors"
	"sync"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/disk"
)

// ErrCrashed is the error of all that comes after a crash.
var ErrCrashed = errors.New("the process was killed")

// An Op is a change that a file system is asked for.
type Op struct {
	Name string // such as "write", "sync", "rename"
	Path string
	Size int // bytes to write
}

// A Fault decides about a change: with an error it fails, after so many
// bytes of a write.
type Fault func(Op) (written int, err error)

// An FS is a file system whose changes can fail. Safe for concurrent use.
type FS struct {
	disk.FS

	mu    sync.Mutex
	fault Fault
	ops   int
	held  chan struct{} // closed when syncs may go on; nil: they may
}

var _ disk.FS = (*FS)(nil)

func New(fsys disk.FS) *FS { return &FS{FS: fsys} }

// Fail has all changes decided by a fault; nil heals.
func (f *FS) Fail(fault Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fault = fault
}

// HoldSyncs has syncs of files wait for release.
func (f *FS) HoldSyncs() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	held := make(chan struct{})
	f.held = held
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.held = nil
		close(held)
	}
}

// Ops returns how many changes were asked for.
func (f *FS) Ops() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ops
}

// CrashAfter makes all changes fail after so many more; of the one that
// fails first, a write is done by half.
func (f *FS) CrashAfter(changes int) {
	crashed := false
	f.Fail(func(op Op) (int, error) {
		changes--
		switch {
		case crashed:
			return 0, ErrCrashed
		case changes < 0:
			crashed = true
			return op.Size / 2, ErrCrashed
		}
		return op.Size, nil
	})
}

// Only fails the changes of a name.
func Only(name string, err error) Fault {
	return func(op Op) (int, error) {
		if op.Name == name {
			return 0, err
		}
		return op.Size, nil
	}
}

func (f *FS) ask(op Op) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops++
	if f.fault == nil {
		return op.Size, nil
	}
	return f.fault(op)
}

func (f *FS) Open(name string) (disk.File, error) {
	opened, err := f.FS.Open(name)
	if err != nil {
		return nil, err
	}
	return &file{opened, f, name}, nil
}

func (f *FS) Create(name string) (disk.File, error) {
	if _, err := f.ask(Op{Name: "create", Path: name}); err != nil {
		return nil, err
	}
	made, err := f.FS.Create(name)
	if err != nil {
		return nil, err
	}
	return &file{made, f, name}, nil
}

func (f *FS) Rename(from, to string) error {
	if _, err := f.ask(Op{Name: "rename", Path: to}); err != nil {
		return err
	}
	return f.FS.Rename(from, to)
}

func (f *FS) RemoveAll(name string) error {
	if _, err := f.ask(Op{Name: "remove", Path: name}); err != nil {
		return err
	}
	return f.FS.RemoveAll(name)
}

func (f *FS) MakeDir(name string) error {
	if _, err := f.ask(Op{Name: "mkdir", Path: name}); err != nil {
		return err
	}
	return f.FS.MakeDir(name)
}

func (f *FS) SyncDir(name string) error {
	if _, err := f.ask(Op{Name: "syncdir", Path: name}); err != nil {
		return err
	}
	return f.FS.SyncDir(name)
}

func (f *FS) Stamp(name string, modified time.Time) error {
	if _, err := f.ask(Op{Name: "stamp", Path: name}); err != nil {
		return err
	}
	return f.FS.Stamp(name, modified)
}

type file struct {
	disk.File

	fs   *FS
	name string
}

func (f *file) WriteAt(p []byte, at int64) (int, error) {
	n, err := f.fs.ask(Op{Name: "write", Path: f.name, Size: len(p)})
	if err == nil {
		return f.File.WriteAt(p, at)
	}
	if n > 0 {
		if _, failed := f.File.WriteAt(p[:n], at); failed != nil {
			return 0, failed
		}
	}
	return n, err
}

func (f *file) Truncate(size int64) error {
	if _, err := f.fs.ask(Op{Name: "truncate", Path: f.name}); err != nil {
		return err
	}
	return f.File.Truncate(size)
}

func (f *file) Sync() error {
	if _, err := f.fs.ask(Op{Name: "sync", Path: f.name}); err != nil {
		return err
	}
	f.fs.mu.Lock()
	held := f.fs.held
	f.fs.mu.Unlock()
	if held != nil {
		<-held
	}
	return f.File.Sync()
}
