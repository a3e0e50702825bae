package filelock

import (
	"errors"
	"os"
	"syscall"
)

// ErrHeld means that another holder has the file.
var ErrHeld = errors.New("another holder has the file")

// A Lock is an exclusive lock of a file. The kernel releases it with the
// process; so does the collector, if nothing refers to it.
type Lock struct{ file *os.File }

// Take waits until nobody else holds the file, in this process or another.
func Take(name string) (*Lock, error) { return lock(name, syscall.LOCK_EX) }

// Try is Take without waiting: ErrHeld.
func Try(name string) (*Lock, error) {
	held, err := lock(name, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	return held, err
}

func lock(name string, how int) (*Lock, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(file.Fd()), how)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return &Lock{file}, nil
}

// Close unlocks, and does not only close: a child that is just being started
// has a copy of the file until it runs its program. Nil has nothing to close.
func (l *Lock) Close() error {
	if l == nil {
		return nil
	}
	return errors.Join(syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN), l.file.Close())
}
