package allinone

import (
	"strings"
	"testing"
	"time"
)

// writes collects writes, each separately.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// A reader that waits for the line that Weir is ready finds the
// commands too: all or nothing is written.
func TestHintsAreWrittenAtOnce(t *testing.T) {
	for _, env := range []DevEnv{{}, {APIKey: "weir_1", ConsolePassword: "secret"}} {
		var got writes
		(&App{dir: &dataDir{path: "/data"}, env: env}).WriteHints(&got, time.Second)
		if len(got) != 1 || !strings.HasPrefix(got[0], "Weir is ready after 1.0 s") || !strings.Contains(got[0], "curl ") {
			t.Errorf("written %q", []string(got))
		}
	}
}
