package dirlock

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld means that another holder has the directory.
var ErrHeld = errors.New("another process holds the directory")

// A Lock is an exclusive lock of a directory. The kernel releases it with the
// process.
type Lock struct{ file *os.File }

// Take locks a directory, or fails with ErrHeld.
func Take(dir string) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return nil, ErrHeld
	}
	return &Lock{file}, nil
}

// Release unlocks, and does not only close: a child that is just being started
// has a copy of the file until it runs its program. Nil has nothing to release.
func (l *Lock) Release() error {
	if l == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
