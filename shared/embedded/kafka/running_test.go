package kafka

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A broker is found by its directory while it serves that, and
// looking creates none.
func TestRunning(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kafka")
	if _, err := Running(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("of a directory that is not there: %v", err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("looking for a broker has made its directory")
	}
	b := start(t, Config{Dir: dir})
	if address, err := Running(dir); err != nil || address != b.Addr() {
		t.Errorf("found %q, %v, want %s", address, err, b.Addr())
	}
	stop(t, b)
	if _, err := Running(dir); !errors.Is(err, ErrNotRunning) {
		t.Errorf("after its end: %v", err)
	}
}
