package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Six errors: two faults twice, one of them with another trace
// the second time, and two that are new.
const labelled = `{"id":"1","group":"A","project":"p","created":"2013-01-01T00:00:00Z","type":"E","message":"no space","stack_trace":["at a.A.f(A.java:1)"]}
{"id":"2","group":"B","project":"p","created":"2013-01-02T00:00:00Z","type":"E","message":"no space","stack_trace":["at a.B.f(B.java:1)"]}
{"id":"3","group":"A","project":"q","created":"2013-01-03T00:00:00.000+0000","type":"E","message":"no space","stack_trace":["at a.A.f(A.java:2)"]}
{"id":"4","group":"B","project":"q","created":"2013-01-04T00:00:00Z","type":"E","message":"no space","stack_trace":["at a.A.f(A.java:3)"]}
{"id":"5","group":"C","project":"q","created":"2013-01-05T00:00:00Z","type":"E","message":"no space","stack_trace":["at a.A.f(A.java:4)"]}
{"id":"6","group":"D","project":"q","created":"2013-01-06T00:00:00Z","type":"F","message":"no space","stack_trace":["at a.A.f(A.java:4)"]}
{"id":"7","group":"E","project":"q","created":"2013-01-07T00:00:00Z","type":"E","dup_unlinked":true,"stack_trace":["at a.A.f(A.java:4)"]}
{"id":"8","group":"A","project":"q","created":"2013-01-07T00:00:00Z","type":"E","primary":false}`

// The verdict on each report follows from its true group and its assigned one.
func TestJudge(t *testing.T) {
	reports, err := read(strings.NewReader(labelled))
	if err != nil || len(reports) != 7 {
		t.Fatalf("%d reports, %v", len(reports), err)
	}
	got := judge(reports, []string{"1", "2", "1", "1", "1", "3", "1"})
	want := []verdict{apart, apart, captured, misled, joined, apart, unjudged}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("report %s: %d, want %d", reports[i].ID, got[i], want[i])
		}
	}
	if p := count(got).point(); p.capture != 0.5 || p.mistakes != 0.25 {
		t.Errorf("point %+v", p)
	}
}

// The whole report can be made of a small file; without one the format is printed.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "errors.jsonl")
	if err := os.WriteFile(path, []byte(labelled), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, path); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Weir site (default)", "Sentry", "from 2013-01", "RR@1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if err := run(&out, ""); err == nil || !strings.Contains(err.Error(), `"stack_trace"`) {
		t.Errorf("without data: %v", err)
	}
	if _, err := read(strings.NewReader(`{"id":"1"}`)); err == nil {
		t.Error("an error without a group is read")
	}
}

// Between the points of a curve capture is
// interpolated, up to that of the last point.
func TestCaptureAt(t *testing.T) {
	curve := []point{{0.6, 0.3}, {0.2, 0.1}}
	for at, want := range map[float64]float64{0: 0, 0.05: 0.1, 0.1: 0.2, 0.2: 0.4, 0.3: 0.6, 0.9: 0.6} {
		if got := captureAt(curve, at); math.Abs(got-want) > 1e-9 {
			t.Errorf("at %v: %v, want %v", at, got, want)
		}
	}
}

// The right group is ranked behind all that are as similar.
func TestRank(t *testing.T) {
	reports, err := read(strings.NewReader(labelled))
	if err != nil {
		t.Fatal(err)
	}
	if places := rank(reports); len(places) != 2 || places[0] != 1 || places[1] != 0 {
		t.Errorf("places %v", places)
	}
}
