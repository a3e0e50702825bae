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

func all(reports []report) half {
	return cut(reports, func(int) bool { return true }, "all", "").tuning
}

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
	if p := count(got, all(reports)).point(); p.capture != 0.5 || p.mistakes != 0.25 {
		t.Errorf("point %+v", p)
	}
}

// fake is a platform whose second fault moves with its callers.
func fake(t *testing.T) platform {
	path := filepath.Join(t.TempDir(), "fake")
	script := `#!/bin/sh
case $1-$2$3 in
--version-) echo "fake 7.1" ;;
*-two3) printf 'type: E\nmessage: no\n\tat shop.More.run(A.java:1)\n' ;;
*) if [ $# = 1 ]; then echo one two; else printf "type: E\nmessage: no $5\n\tat shop.$2.run($1:1)\n"; fi ;;
esac`
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return platform{name: "Fake", program: "go/shop.go", find: path, run: "{tool} {source}"}
}

// A matrix has each fault in each variant, and counts what moves.
func TestMatrix(t *testing.T) {
	m, err := fake(t).matrix()
	if err != nil || m.platform != "Fake 7.1" || len(m.faults) != 2 {
		t.Fatalf("%+v, %v", m, err)
	}
	s := m.score(deciding().keyOf, nil)
	if (s.kept != share{9, 12}) || (s.apart != share{1, 1}) || *s.columns["3 callers"] != (share{1, 2}) {
		t.Errorf("%+v, %v", s, s.columns["3 callers"])
	}
	broken := fake(t)
	broken.find = filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken.find, []byte("#!/bin/sh\necho one 7.1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := broken.matrix(); err == nil || !strings.Contains(err.Error(), "printed no error") {
		t.Errorf("a program that does not fail: %v", err)
	}
}

// Functions and classes get short names, in each build others; the
// names of methods, members and faults stay.
func TestMinify(t *testing.T) {
	const source = "// A shop.\nclass Cart {\n  total() {\n    return this.sum;\n  }\n}\nfunction sum(id) {\n  return new Cart().total();\n}\nf({sum: sum, 'Cart': 1});\n"
	for build, want := range []string{
		"class a {total() {return this.sum;}}function b(id) {return new a().total();}f({sum: b, 'Cart': 1});\n",
		"class f {total() {return this.sum;}}function g(id) {return new f().total();}f({sum: g, 'Cart': 1});\n",
	} {
		if got := minify(source, build); got != want {
			t.Errorf("build %d: %s", build, got)
		}
	}
}

// The whole report can be made of a small file and a program.
func TestRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "errors.jsonl")
	if err := os.WriteFile(path, []byte(labelled), 0o600); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(&out, options{data: path}, []platform{fake(t), {name: "Absent", find: "no-such-program"}}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Weir site (default)", "Sentry", "On errors from 2013-01-04", "Tuned on q", "by the tuning half", "RR@1",
		"Fake 7.1 ", " 9/12 ", "Absent", "not installed", "16 words "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if err := run(&out, options{data: path + ".absent"}, nil); err == nil {
		t.Error("a file that is absent is read")
	}
	if _, err := read(strings.NewReader(`{"id":"1"}`)); err == nil {
		t.Error("an error without a group is read")
	}
}

// Both halves have about as many duplicates, and each report is in one.
func TestSplits(t *testing.T) {
	var reports []report
	for project, n := range map[string]int{"a": 5, "b": 4, "c": 3, "d": 2} {
		for range n + 1 { // the first is no duplicate
			reports = append(reports, report{Group: project, Project: project})
		}
	}
	for _, s := range []split{byProject(reports), byTime(reports)} {
		counted := [2]int{}
		for _, i := range duplicatesOf(reports) {
			if s.tuning.holds[i] == s.reporting.holds[i] {
				t.Fatalf("report %d is in both halves or none", i)
			}
			if s.tuning.holds[i] {
				counted[0]++
			} else {
				counted[1]++
			}
		}
		if counted != [2]int{7, 7} {
			t.Errorf("%s has %v duplicates", s.tuning.name, counted)
		}
	}
}

// The choice captures most within the false joins, else it makes fewest.
func TestChoose(t *testing.T) {
	rules := []rule{{"loose", []verdict{captured, captured, joined, joined}}, {"middle", []verdict{captured, missed, apart, joined}}, {"strict", []verdict{missed, missed, apart, apart}}}
	for share, want := range map[float64]string{1: "loose", 0.5: "middle", 0.4: "strict"} {
		if got := choose(rules, all(make([]report, 4)), share); got.name != want {
			t.Errorf("at %v: %s", share, got.name)
		}
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
	if places := rank(reports); len(places) != 2 || places[2] != (ranked{1, 1}) || places[3].place != 0 {
		t.Errorf("places %v", places)
	}
}
