//go:build replicas || apache

package e2e

import (
	"os"
	"testing"

	"github.com/weirlog/weir/deploy/prometheus/recording"
	"github.com/weirlog/weir/shared/testenv"
)

// Recordings are of faults; Prometheus judges them at the end.
type recordings struct {
	t        *testing.T
	promtool string
	all      map[string][]*recording.Recording // by fault, named as on the page
}

func newRecordings(t *testing.T) *recordings {
	t.Helper()
	s := &recordings{t: t, promtool: os.Getenv("WEIR_PROMTOOL"), all: map[string][]*recording.Recording{}}
	if s.promtool == "" {
		t.Fatal("WEIR_PROMTOOL names no promtool: the Makefile does")
	}
	return s
}

// begin begins a recording with undisturbed processes.
func (s *recordings) begin(fault string, processes []string) *recording.Recording {
	s.t.Helper()
	r, err := recording.Begin(s.t.Context(), processes, "../prometheus/slo.yaml", "../prometheus/alerts.yaml")
	testenv.Must(s.t, err)
	s.all[fault] = append(s.all[fault], r)
	return r
}

// judge fails the test if a fault raises other alerts than the page
// says, an alert fired before it, or it was not recorded.
func (s *recordings) judge() {
	s.t.Helper()
	page := alertsOnThePage(s.t)
	for fault, test := range recorded {
		if test == s.t.Name() && len(s.all[fault]) == 0 {
			s.t.Errorf("%s: there is no recording", fault)
		}
	}
	for fault, all := range s.all {
		for _, r := range all {
			if err := r.Judge(s.t.Context(), s.promtool, page[fault]); err != nil {
				s.t.Errorf("%s: %v", fault, err)
			}
		}
	}
}
