package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/docs/docstest"
	"github.com/weirlog/weir/shared/testenv/programs"
)

// guide runs every command of a page in order, with the replacement for
// curl. None may fail.
func guide(t *testing.T, page, dataDir string) {
	text, err := os.ReadFile(page)
	must(t, err)
	script := "set -eu\n"
	script += strings.Join(docstest.Blocks(string(text)), "")
	if calls := strings.Count(script, "ask "); calls < 20 {
		t.Fatalf("%s has %d calls", page, calls)
	}
	dir := t.TempDir()
	must(t, os.Symlink(dataDir, filepath.Join(dir, ".weir")))
	shell := exec.CommandContext(t.Context(), "sh", "-c", script)
	shell.Dir = dir
	shell.Env = []string{"PATH=" + filepath.Dir(programs.Build(t, "deploy/e2e/curl")) + ":" + os.Getenv("PATH")}
	if out, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", page, err, out)
	}
}
