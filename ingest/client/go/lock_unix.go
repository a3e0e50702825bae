//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package weir

import (
	"os"
	"syscall"
)

// lockFile holds a file until it is closed, or the process ends.
func lockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
