package filelock

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// A released file can be locked at once, also while a child that was just
// forked has a copy of it.
func TestReleased(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	held, err := Try(name)
	testenv.Must(t, err)
	forked, err := syscall.Dup(int(held.file.Fd()))
	testenv.Must(t, err)
	defer syscall.Close(forked)
	if _, err := Try(name); !errors.Is(err, ErrHeld) {
		t.Errorf("while it is held: %v", err)
	}
	testenv.Must(t, held.Close())
	again, err := Try(name)
	if err != nil {
		t.Fatalf("once it is released: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
