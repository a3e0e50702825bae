package recording

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// How long phases last in a recording, in minutes, and how each is scraped.
const (
	baseline     = 6*60 + 30 // as far as alerts that wake somebody look back
	FaultMinutes = 30        // a fault
	scrapes      = 12        // longer than brokers have a reader wait at the end of a log
	pause        = time.Second
)

// A Recording is what Prometheus would have seen of processes if each phase had
// lasted for minutes.
type Recording struct {
	rules     []string        // files
	judged    map[string]bool // metrics that rules go by
	minutes   int
	timelines map[string]*timeline
}

var metric = regexp.MustCompile(`\b(?:weir|process)_[a-z_]+[a-z]\b`)

// Begin begins a recording for rules, which lie in files, with processes to which
// nothing happens. It takes seconds, and so does each phase.
func Begin(ctx context.Context, processes []string, rules ...string) (*Recording, error) {
	r, err := of(rules...)
	if err != nil {
		return nil, err
	}
	return r, r.Phase(ctx, baseline, processes)
}

// of is a recording for rules, without a phase.
func of(rules ...string) (*Recording, error) {
	r := &Recording{judged: map[string]bool{"up": true}, timelines: map[string]*timeline{}}
	for _, file := range rules {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, name := range metric.FindAllString(string(text), -1) {
			r.judged[name] = true
		}
		absolute, err := filepath.Abs(file) // a test for promtool lies elsewhere
		if err != nil {
			return nil, err
		}
		r.rules = append(r.rules, absolute)
	}
	return r, nil
}

// Phase goes on with what the processes, by the addresses of their metrics, show
// now, for so many minutes.
func (r *Recording) Phase(ctx context.Context, minutes int, processes []string) error {
	taken := make([]scrape, scrapes)
	for i := range taken {
		if i > 0 {
			time.Sleep(pause) // a pace, not a wait
		}
		taken[i] = take(ctx, processes)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("the phase is not whole: %w", ctx.Err())
	}
	r.add(minutes, taken)
	return nil
}

func (r *Recording) add(minutes int, taken []scrape) {
	until := taken[len(taken)-1].at
	for series, values := range bySeries(taken) {
		if !r.judged[nameOf(series)] {
			continue
		}
		s := r.timelines[series]
		if s == nil {
			s = &timeline{}
			r.timelines[series] = s
		}
		s.missing(r.minutes)
		s.play(nameOf(series), values, minutes, until)
	}
	r.minutes += minutes
	for _, s := range r.timelines {
		s.missing(r.minutes)
	}
}

// bySeries are the values of the series that are there at the end.
func bySeries(taken []scrape) map[string][]float64 {
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
