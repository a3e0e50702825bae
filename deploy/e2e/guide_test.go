package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A block of commands in a page, which may be indented.
var commands = regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```$")

// blocksOf are the blocks of commands in a section of a page of deploy/docs.
func blocksOf(t *testing.T, page, section string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../docs", page))
	must(t, err)
	_, after, _ := strings.Cut(string(text), "# "+section+"\n")
	within, _, _ := strings.Cut(after, "\n##")
	for _, block := range commands.FindAllStringSubmatch(within, -1) {
		found = append(found, block[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s has no commands in %q", page, section)
	}
	return found
}

// guide runs every command of a page, one after the other as somebody who
// reads it would, with the stand-in for curl. None may fail.
func guide(t *testing.T, page, dataDir string) {
	text, err := os.ReadFile(page)
	must(t, err)
	script := "set -eu\n"
	for _, block := range commands.FindAllStringSubmatch(string(text), -1) {
		script += block[1]
	}
	if calls := strings.Count(script, "ask "); calls < 20 {
		t.Fatalf("%s has %d calls", page, calls)
	}
	dir := t.TempDir()
	must(t, os.Symlink(dataDir, filepath.Join(dir, ".weir")))
	shell := exec.CommandContext(t.Context(), "sh", "-c", script)
	shell.Dir = dir
	shell.Env = []string{"PATH=" + filepath.Dir(build(t, "deploy/e2e/curl")) + ":" + os.Getenv("PATH")}
	if out, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", page, err, out)
	}
}
