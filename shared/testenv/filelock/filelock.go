package filelock

import (
	"errors"
	"os"
	"syscall"
)

// Take waits until nobody else holds the file, of this process or another. Closing it, or the end
// of the process, ends the turn.
func Take(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
