package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/docs/docstest"
)

// short measures very little, for moments.
const short = "--broker=embedded --organizations=2 --senders=2 --probes=1 --warm-up=100ms --saturated=500ms --paced=500ms --rest=100ms --parts=50 --rates=1000"

// The page's benchmark command measures something of every kind.
func TestThePageIsFollowed(t *testing.T) {
	run := exec.CommandContext(t.Context(), "sh", "-c", docstest.BlocksOf(t, "size.md", "How large an installation has to be")[0])
	run.Dir, run.Env = "../..", append(os.Environ(), "ARGS="+short)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, row := range []string{"entries/s accepted", "CPU per batch", "entries/s for each core", "until the group shows it", "At rest Weir"} {
		if !strings.Contains(string(out), row) {
			t.Errorf("it has no row %q:\n%s", row, out)
		}
	}
}
