package allinone

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked means that another process uses the data directory.
var ErrLocked = errors.New("data directory in use")

// A dataDir is the directory of all data. One process at a time holds
// it; the kernel releases it with the process.
type dataDir struct {
	path string // absolute
	lock *os.File
}

// openDataDir creates a missing directory, and locks it. Other users
// may pass through it, since the database runs as another user if the
// caller is root; they can't read the secrets in it.
func openDataDir(path string) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("cannot find the data directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the data directory: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(path, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot lock the data directory: %w", err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = lock.Close()
		return nil, fmt.Errorf("%w: another weir runs on %q: stop it, or name another directory with WEIR_DATA_DIR", ErrLocked, path)
	}
	return &dataDir{path: path, lock: lock}, nil
}

// Lock keeps other processes away from a data directory until release is
// called. It fails with ErrLocked while one uses it.
func Lock(path string) (release func() error, err error) {
	d, err := openDataDir(path)
	if err != nil {
		return nil, err
	}
	return d.close, nil
}

func (d *dataDir) close() error { return d.lock.Close() }

func (d *dataDir) tls() string      { return filepath.Join(d.path, "tls") }
func (d *dataDir) postgres() string { return filepath.Join(d.path, "postgres") }
func (d *dataDir) kafka() string    { return filepath.Join(d.path, "kafka") }
func (d *dataDir) state() string    { return filepath.Join(d.path, "state") }
func (d *dataDir) env() string      { return filepath.Join(d.path, EnvFile) }
