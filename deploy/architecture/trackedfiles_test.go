package architecture

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// largestTracked exceeds the largest source file.
const largestTracked = 1 << 20

// Build outputs are not committed: every clone would keep them forever.
func TestNothingBuiltIsTracked(t *testing.T) {
	const root = "../.."
	listed, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git cannot list the files of this clone: %v", err)
	}
	files := strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
	if len(files) < 1000 {
		t.Fatalf("git lists %d files: they are not read right", len(files))
	}
	for _, file := range files {
		if info, err := os.Lstat(filepath.Join(root, file)); err == nil && info.Size() > largestTracked {
			t.Errorf("%s has %d bytes: take it out of the commit and name it in .gitignore", file, info.Size())
		}
	}
}
