package recording

import (
	"testing"
	"time"
)

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
