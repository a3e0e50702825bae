package allinone

import (
	"strings"
	"testing"
	"time"
)

// writes keeps what is written, each time apart.
type writes []string

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, string(p))
	return len(p), nil
}

// Who waits for the line that Weir is ready finds the commands as well: a
// program that reads the output meanwhile sees all or nothing.
func TestHintsAreWrittenAtOnce(t *testing.T) {
	for _, env := range []DevEnv{{}, {APIKey: "weir_1", ConsolePassword: "secret"}} {
		var got writes
		(&App{dir: &dataDir{path: "/data"}, env: env}).WriteHints(&got, time.Second)
		if len(got) != 1 || !strings.HasPrefix(got[0], "Weir is ready after 1.0 s") || !strings.Contains(got[0], "curl ") {
			t.Errorf("written %q", []string(got))
		}
	}
}
