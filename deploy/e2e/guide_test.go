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
// curl, and returns what they print. None may fail. least is how many calls
// by a function of the page there are, such as "ask".
func guide(t *testing.T, page, dataDir, function string, least int) string {
	text, err := os.ReadFile(page)
	must(t, err)
	script := "set -eu\n"
	script += strings.Join(docstest.Blocks(string(text)), "")
	if calls := strings.Count(script, function+" "); calls < least {
		t.Fatalf("%s has %d calls", page, calls)
	}
	dir := t.TempDir()
	must(t, os.Symlink(dataDir, filepath.Join(dir, ".weir")))
	shell := exec.CommandContext(t.Context(), "sh", "-c", script)
	shell.Dir = dir
	shell.Env = []string{"PATH=" + filepath.Dir(programs.Build(t, "deploy/e2e/curl")) + ":" + os.Getenv("PATH")}
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", page, err, out)
	}
	return string(out)
}

// sending follows the page for those whose programs send logs.
func sending(t *testing.T, dataDir string) {
	answers := guide(t, "../../ingest/docs/sending.md", dataDir, "send", 6)
	for _, promised := range []string{`"bytes_used":75,"rejected":0`, "Accepted 1 of 2 entries; 1 rejected", `"code":"invalid_entries"`, `"code":"idempotency_key_reused"`} {
		if !strings.Contains(answers, promised) {
			t.Errorf("no answer has %s: %s", promised, answers)
		}
	}
}
