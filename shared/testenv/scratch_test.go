package testenv

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TMPDIR wins, and memory is used only if there is room.
func TestScratch(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := Scratch("server-")
	if err != nil || filepath.Dir(dir) != os.Getenv("TMPDIR") {
		t.Errorf("made %q, %v", dir, err)
	}
	if hasRoom(filepath.Join(dir, "missing")) {
		t.Error("there is room where there is nothing")
	}
	for text, want := range map[string]uint64{"MemTotal: 9 kB\nMemAvailable:   20 kB\n": 20 << 10, "MemTotal: 9 kB\n": 0} {
		if got := available(strings.NewReader(text)); got != want {
			t.Errorf("%d bytes are available of %q, want %d", got, text, want)
		}
	}
}
