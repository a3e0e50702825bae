//go:build promtool

package recording

import (
	"os"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

// recorded returns a recording of one process, which is up or down
// in each phase.
func recorded(t *testing.T, up ...float64) *Recording {
	t.Helper()
	r, err := of("../alerts.yaml", "../slo.yaml")
	testenv.Must(t, err)
	for i, value := range up {
		minutes := baseline
		if i > 0 {
			minutes = FaultMinutes / (len(up) - 1)
		}
		r.add(minutes, []scrape{{time.Now(), map[string]float64{`up{instance="a",job="weir"}`: value}}})
	}
	return r
}

// The judge accepts exactly the rules' alerts, whenever they fire after
// the fault's start, and none before.
func TestJudge(t *testing.T) {
	promtool, down := os.Getenv("WEIR_PROMTOOL"), []string{"WeirTargetDown"}
	if promtool == "" {
		t.Fatal("WEIR_PROMTOOL names no promtool: make verify does")
	}
	for _, c := range []struct {
		what   string
		up     []float64
		alerts []string
		right  bool
	}{
		{"a process is down", []float64{1, 0}, down, true},
		{"an alert that nobody expects, and that is gone at the end", []float64{1, 0, 1}, nil, false},
		{"an alert that is not raised, beside one that is", []float64{1, 0}, append(down, "WeirStateStale"), false},
		{"an alert before the fault", []float64{0, 0}, down, false},
	} {
		if err := recorded(t, c.up...).Judge(t.Context(), promtool, c.alerts); (err == nil) != c.right {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}
