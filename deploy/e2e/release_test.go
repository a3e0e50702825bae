//go:build replicas

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// envUpgradeFrom is the commit whose programs run beside today's.
const envUpgradeFrom = "WEIR_UPGRADE_FROM"

// A release is the folder of the programs of one version.
type release string

func (r release) program(main string) string { return filepath.Join(string(r), filepath.Base(main)) }

// today returns the programs of this tree.
func today(t *testing.T) release {
	t.Helper()
	return compile(t, filepath.Join("..", ".."))
}

// earlier returns the programs of WEIR_UPGRADE_FROM, from a clone
// beside this tree.
func earlier(t *testing.T) release {
	t.Helper()
	commit := os.Getenv(envUpgradeFrom)
	if commit == "" {
		t.Fatalf("%s names no commit to upgrade from: make test-upgrade does", envUpgradeFrom)
	}
	tree := filepath.Join(t.TempDir(), "weir")
	run(t, ".", "git", "clone", "-q", "--shared", "--no-checkout", strings.TrimSpace(run(t, ".", "git", "rev-parse", "--show-toplevel")), tree)
	run(t, tree, "git", "checkout", "-q", "--detach", commit)
	return compile(t, tree)
}

// compile builds every service of a tree, the gateway, and the program
// that creates topics.
func compile(t *testing.T, tree string) release {
	t.Helper()
	folder := t.TempDir()
	line := []string{"build", "-ldflags=-s", "-o", folder + "/", "./deploy/cmd/weir", "./ledger/cmd/ledger-verify"}
	for _, s := range lineup {
		line = append(line, "./"+s.main)
	}
	run(t, tree, "go", line...)
	return release(folder)
}

func run(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}
