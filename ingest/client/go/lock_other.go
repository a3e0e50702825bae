//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package weir

import (
	"errors"
	"os"
)

func lockFile(*os.File) error { return errors.New("a spool needs the flock of Unix") }
