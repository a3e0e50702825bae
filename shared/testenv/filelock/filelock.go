package filelock

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// ErrHeld means that another holder has the file.
var ErrHeld = errors.New("another test holds it")

// Take waits until nobody else holds the file, in this process or
// another. Closing it, or the end of the process, releases it.
func Take(name string) (*os.File, error) { return lock(name, syscall.LOCK_EX) }

// Try is Take without waiting: ErrHeld.
func Try(name string) (*os.File, error) {
	file, err := lock(name, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrHeld
	}
	return file, err
}

func lock(name string, how int) (*os.File, error) {
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
	return file, nil
}

// Path of the file that tests lock for a server, by its address.
func Path(server string) string {
	id := sha256.Sum256([]byte(server))
	return filepath.Join(os.TempDir(), "weir-test-turn-"+hex.EncodeToString(id[:6]))
}
