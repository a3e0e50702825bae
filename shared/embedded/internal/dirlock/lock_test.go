package dirlock

import (
	"errors"
	"syscall"
	"testing"
)

// A released directory can be locked at once, also while a child that was just
// forked has a copy of the file.
func TestReleased(t *testing.T) {
	dir := t.TempDir()
	held, err := Take(dir)
	if err != nil {
		t.Fatal(err)
	}
	forked, err := syscall.Dup(int(held.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(forked)
	if _, err := Take(dir); !errors.Is(err, ErrHeld) {
		t.Errorf("while it is held: %v", err)
	}
	if err := held.Release(); err != nil {
		t.Fatal(err)
	}
	again, err := Take(dir)
	if err != nil {
		t.Fatalf("once it is released: %v", err)
	}
	if err := again.Release(); err != nil {
		t.Error(err)
	}
}
