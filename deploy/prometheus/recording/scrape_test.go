package recording

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
)

// A scrape stores what Prometheus does: series with their target's
// labels, separate buckets, and whether the target answers.
func TestScrapes(t *testing.T) {
	shown := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprint(w, "# TYPE weir_took_seconds histogram\nweir_took_seconds_bucket{le=\"1\"} 2\nweir_took_seconds_bucket{le=\"+Inf\"} 3\n",
			"weir_took_seconds_sum 4\nweir_took_seconds_count 3\n# TYPE weir_lag gauge\nweir_lag{group=\"a b\"} 5\n")
	})
	process := httptest.NewServer(shown)
	defer process.Close()
	address, dead := process.Listener.Addr().String(), "127.0.0.1:1"
	of := fmt.Sprintf(`instance=%q, job="weir"`, address)
	want := map[string]float64{
		fmt.Sprintf(`up{instance=%q, job="weir"}`, dead): 0, "up{" + of + "}": 1,
		`weir_lag{group="a b", ` + of + "}": 5, "weir_took_seconds_sum{" + of + "}": 4, "weir_took_seconds_count{" + of + "}": 3,
		"weir_took_seconds_bucket{" + of + `, le="1"}`: 2, "weir_took_seconds_bucket{" + of + `, le="+Inf"}`: 3,
	}
	if got := take(t.Context(), []string{address, dead}).shown; !maps.Equal(got, want) {
		t.Errorf("seen is\n%v, want\n%v", got, want)
	}
}
