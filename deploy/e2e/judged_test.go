//go:build replicas || apache

package e2e

import (
	"os"
	"testing"

	"github.com/weirlog/weir/deploy/prometheus/film"
)

// A studio has faults filmed, and Prometheus judge the films when all is over.
type studio struct {
	t        *testing.T
	promtool string
	films    map[string][]*film.Film // by fault, as the page names it
}

func newStudio(t *testing.T) *studio {
	t.Helper()
	s := &studio{t: t, promtool: os.Getenv("WEIR_PROMTOOL"), films: map[string][]*film.Film{}}
	if s.promtool == "" {
		t.Fatal("WEIR_PROMTOOL names no promtool: the Makefile does")
	}
	return s
}

// film begins a film, with processes to which nothing has happened yet.
func (s *studio) film(fault string, processes []string) *film.Film {
	s.t.Helper()
	f, err := film.Begin(s.t.Context(), processes, "../prometheus/slo.yaml", "../prometheus/alerts.yaml")
	must(s.t, err)
	s.films[fault] = append(s.films[fault], f)
	return f
}

// judge fails the test where a fault raises anything but what the page says,
// something was raised before it, or it was not filmed.
func (s *studio) judge() {
	s.t.Helper()
	page := alertsOnThePage(s.t)
	for fault, test := range filmed {
		if test == s.t.Name() && len(s.films[fault]) == 0 {
			s.t.Errorf("%s: there is no film", fault)
		}
	}
	for fault, films := range s.films {
		for _, f := range films {
			if err := f.Judge(s.t.Context(), s.promtool, page[fault]); err != nil {
				s.t.Errorf("%s: %v", fault, err)
			}
		}
	}
}
