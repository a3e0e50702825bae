package recording

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
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

// A phase is extended: counters at their rate, through a restart as
// well, timestamps at their distance, a rise beyond earlier values, and
// all else repeated.
func TestPhasesAreExtended(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	type phase struct {
		values  []float64
		minutes int
	}
	for _, c := range []struct {
		name   string
		phases []phase
		want   string
	}{
		{"weir_a_total", []phase{{[]float64{10, 11, 12}, 3}, {[]float64{40, 40, 40}, 2}}, "10 70 130 158 158"},
		{"weir_a_total", []phase{{[]float64{10, 11, 12}, 2}, {[]float64{3, 4, 5}, 2}}, "10 70 3 63"},
		{"weir_a_timestamp_seconds", []phase{{[]float64{1_800_000_100}, 3}}, "100 160 220"},
		{"weir_a_timestamp_seconds", []phase{{[]float64{0, 0}, 2}}, "0 0"},
		{"weir_lag_seconds", []phase{{[]float64{0, 1, 2}, 4}, {[]float64{3, 4, 5}, 3}}, "0 1 2 0 3 63 123"},
		{"weir_lag_seconds", []phase{{[]float64{0, 9, 0}, 3}, {[]float64{7, 8, 9}, 3}}, "0 9 0 7 8 9"},
		{"weir_lag_seconds", []phase{{[]float64{5, 5, 5}, 2}, {[]float64{5, 6, 5}, 4}}, "5 5 5 6 5 5"},
	} {
		var s timeline
		for _, one := range c.phases {
			s.play(c.name, one.values, one.minutes, now)
		}
		if s.String() != c.want {
			t.Errorf("%s: %+v is played as %q, want %q", c.name, c.phases, &s, c.want)
		}
	}
}
