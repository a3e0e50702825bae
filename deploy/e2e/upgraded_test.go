//go:build replicas

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxTries limits a post's tries while replicas are replaced: the
// gateway may meet one that has just stopped, and so may the next try.
const maxTries = 5

// Every service is upgraded from an earlier version to today's and
// back, replica by replica, on one broker and one database, under load.
// In each state a new organization is created, posts and reads. Nothing
// is lost or doubled.
func TestUpgraded(t *testing.T) {
	before, after := earlier(t), today(t)
	r := replicate(t, before, backends(t))
	in := r.front()
	seen := in.watch()
	loaded, m, sent := in.tenant(t, t.Context(), "loaded", "scale"), &maker{mark: "loaded"}, &history{}
	var made []*newcomer
	traffic(t, t.Context(), in, loaded, m, sent, func(ctx context.Context, underway <-chan struct{}) {
		made = append(made, r.newcomer(ctx, "before"))
		r.prepare(after, "topics", "migrate")
		for _, state := range []struct {
			name   string
			number int
			by     release
		}{{"after beside before", 0, after}, {"after", 1, after}, {"before beside after", 0, before}, {"before again", 1, before}} {
			for _, s := range r.services {
				aim(ctx, underway)
				r.replace(s, state.number, state.by)
			}
			r.awaitMixed()
			made = append(made, r.newcomer(ctx, state.name))
		}
	})
	seen.check(t, maxTries)
	verify(t, t.Context(), in, loaded, sent)
	for _, n := range made {
		verify(t, t.Context(), in, n.tenant, n.sent)
	}
	r.stop()
	r.verify(before)
	r.verify(after)
}

// A newcomer is an organization created in one state of the installation.
type newcomer struct {
	tenant
	sent *history
}

// newcomer creates one, posts errors of every language, and reads them back.
func (r *replicated) newcomer(ctx context.Context, name string) *newcomer {
	r.t.Helper()
	in, m := r.front(), &maker{mark: name}
	n := &newcomer{in.tenant(r.t, ctx, name, "scale"), &history{}}
	for _, language := range languages {
		entries := append(m.some(9), m.failing(language))
		deliver(r.t, ctx, in, n.tenant, name+" "+language, plainly(body(texts(entries)...)), entries, n.sent)
	}
	verify(r.t, ctx, in, n.tenant, n.sent)
	r.t.Logf("%s: %s works", name, n.organization)
	return n
}

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
