package recording

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"
)

// Durations of phases in a recording, in minutes, and the scrapes of each.
const (
	baseline     = 6*60 + 30 // as far as urgent alerts look back
	FaultMinutes = 30        // a fault
	scrapes      = 12        // longer than brokers let a reader wait at the end of a log
	pause        = time.Second
)

// A Recording is what Prometheus would have seen of processes if each
// phase had lasted for minutes.
type Recording struct {
	rules     []string        // files
	judged    map[string]bool // metrics in the rules
	minutes   int
	timelines map[string]*timeline
}

var metric = regexp.MustCompile(`\b(?:weir|process)_[a-z_]+[a-z]\b`)

// Begin begins a recording for rules, given as files, with undisturbed
// processes. It takes seconds, and so does each phase.
func Begin(ctx context.Context, processes []string, rules ...string) (*Recording, error) {
	r, err := of(rules...)
	if err != nil {
		return nil, err
	}
	return r, r.Phase(ctx, baseline, processes)
}

// of returns a recording for rules, without a phase.
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
		absolute, err := filepath.Abs(file) // promtool's test file lies elsewhere
		if err != nil {
			return nil, err
		}
		r.rules = append(r.rules, absolute)
	}
	return r, nil
}

// Phase appends so many minutes of what the processes, given by their
// metrics' addresses, show now.
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

// bySeries returns the values of the series that exist at the end.
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
