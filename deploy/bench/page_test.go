package bench_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// short measures with little, for moments.
const short = "--broker=embedded --organizations=2 --senders=2 --probes=1 --warm-up=100ms --saturated=500ms --paced=500ms --paced-rate=1000"

// The benchmark of the page measures something of every kind.
func TestThePageIsFollowed(t *testing.T) {
	run := exec.CommandContext(t.Context(), "sh", "-c", firstCommands(t, "size.md", "How large an installation has to be"))
	run.Dir, run.Env = "../..", append(os.Environ(), "ARGS="+short)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, row := range []string{"full load: entries/s accepted", "entries/s for each core", "kept of an entry", "paced load: entries/s accepted"} {
		if !strings.Contains(string(out), row) {
			t.Errorf("it has no row %q:\n%s", row, out)
		}
	}
}

// firstCommands are those of a section of a page of deploy/docs.
func firstCommands(t *testing.T, page, section string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "# "+section+"\n")
	found := regexp.MustCompile("(?ms)^```sh\n(.*?)^```$").FindStringSubmatch(after)
	if found == nil {
		t.Fatalf("%s has no commands in %q", page, section)
	}
	return found[1]
}
