package film

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// How long scenes last in a film, in minutes, and how each is looked at.
const (
	calm    = 6*60 + 30 // as far as alerts that wake somebody look back
	Lasting = 30        // a fault
	looks   = 12        // longer than brokers have a reader wait at the end of a log
	pause   = time.Second
)

// A Film is what Prometheus would have seen of processes if each scene had
// lasted for minutes.
type Film struct {
	rules   []string        // files
	judged  map[string]bool // metrics that rules go by
	minutes int
	strips  map[string]*strip
}

var metric = regexp.MustCompile(`\b(?:weir|process)_[a-z_]+[a-z]\b`)

// Begin begins a film for rules, which lie in files, with a scene of processes
// to which nothing happens. It takes seconds, and so does each scene.
func Begin(ctx context.Context, processes []string, rules ...string) (*Film, error) {
	f, err := of(rules...)
	if err != nil {
		return nil, err
	}
	return f, f.Scene(ctx, calm, processes)
}

// of is a film for rules, without a scene.
func of(rules ...string) (*Film, error) {
	f := &Film{judged: map[string]bool{"up": true}, strips: map[string]*strip{}}
	for _, file := range rules {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, name := range metric.FindAllString(string(text), -1) {
			f.judged[name] = true
		}
		absolute, err := filepath.Abs(file) // a test for promtool lies elsewhere
		if err != nil {
			return nil, err
		}
		f.rules = append(f.rules, absolute)
	}
	return f, nil
}

// Scene goes on with what the processes, by the addresses of their metrics, show
// now, for so many minutes.
func (f *Film) Scene(ctx context.Context, minutes int, processes []string) error {
	taken := make([]look, looks)
	for i := range taken {
		if i > 0 {
			time.Sleep(pause) // a pace, not a wait
		}
		taken[i] = take(ctx, processes)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the scene is not whole: %w", ctx.Err())
	}
	f.add(minutes, taken)
	return nil
}

func (f *Film) add(minutes int, taken []look) {
	until := taken[len(taken)-1].at
	for series, values := range bySeries(taken) {
		if !f.judged[nameOf(series)] {
			continue
		}
		s := f.strips[series]
		if s == nil {
			s = &strip{}
			f.strips[series] = s
		}
		s.missing(f.minutes)
		s.play(nameOf(series), values, minutes, until)
	}
	f.minutes += minutes
	for _, s := range f.strips {
		s.missing(f.minutes)
	}
}

// bySeries are the values of the series that are there at the end.
func bySeries(taken []look) map[string][]float64 {
	all := map[string][]float64{}
	for series := range taken[len(taken)-1].shown {
		for _, one := range taken {
			if value, there := one.shown[series]; there {
				all[series] = append(all[series], value)
			}
		}
	}
	return all
}
