package atomicfile

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// A file is replaced whole, with its mode, and nothing else is left; one
// that cannot be written leaves the old one.
func TestWriteReplacesWholeFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	for _, text := range []string{"a longer one", "short", ""} {
		testenv.Must(t, Write(path, text, 0o600))
		expect(t, path, text)
	}
	testenv.Must(t, Write(path, "old", 0o600))
	full := errors.New("no space")
	err := WriteFrom(path, 0o600, func(file io.Writer) error {
		_, _ = io.WriteString(file, "ne")
		return full
	})
	if !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
	expect(t, path, "old")
}

func expect(t *testing.T, path, text string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != text {
		t.Errorf("got %q, %v, want %q", raw, err, text)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%v, %v are in the folder", files, err)
	}
}
