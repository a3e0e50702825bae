package ingest_test

import (
	"testing"

	"github.com/weirlog/weir/ingest"
)

// Any number of stretches ends in few runs, none with more than two shares.
func TestFoldAt(t *testing.T) {
	const most = 64
	var runs []ingest.StretchRun
	for n := range int64(5000) {
		runs = append(runs, ingest.Stretch{Number: n}.Run())
		if len(runs) <= most {
			continue
		}
		at := ingest.FoldAt(runs)
		runs[at].After = runs[at+1].After
		runs = append(runs[:at+1], runs[at+2:]...)
		for i, r := range runs {
			if r.Stretches() > 1+2*(n+1)/most || i > 0 && r.First != runs[i-1].After || len(runs) != most {
				t.Fatalf("%d stretches: run %d of %d is %+v", n+1, i, len(runs), r)
			}
		}
	}
	if runs[0].First != 0 || runs[most-1].After != 5000 {
		t.Errorf("5,000 stretches are summed up from %d to %d", runs[0].First, runs[most-1].After)
	}
}

// Runs that do not touch each other stay apart.
func TestFoldAtAHole(t *testing.T) {
	runs := []ingest.StretchRun{{First: 0, After: 1}, {First: 2, After: 3}, {First: 4, After: 40}, {First: 40, After: 41}}
	if at := ingest.FoldAt(runs); at != 2 {
		t.Errorf("runs fold at %d, want 2", at)
	}
	if at := ingest.FoldAt(runs[:3]); at != -1 {
		t.Errorf("runs with holes between them fold at %d", at)
	}
}
