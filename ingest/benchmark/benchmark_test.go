package benchmark

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// victoriaProgram is where make builds it.
const victoriaProgram = "../../bin/victoria-logs"

// A day is stored and asked for everything. What is not measured is said, and
// both stores answer alike where there are both.
func TestBenchmark(t *testing.T) {
	c := Command{Entries: 30_000, Repeats: 1, Each: time.Minute, Profiles: t.TempDir()}
	testenv.Must(t, c.Validate())
	if _, err := os.Stat(victoriaProgram); err == nil {
		c.Victoria = victoriaProgram
	}
	var out bytes.Buffer
	if err := c.Measure(t.Context(), &out, t.TempDir(), postgrestest.URL(t), postgrestest.URL(t)); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	text := out.String()
	for _, q := range questions {
		if !strings.Contains(text, "\n"+q.name+", p50 / p95, ") {
			t.Errorf("it has no row %q:\n%s", q.name, text)
		}
	}
	if without := strings.Contains(text, "WITHOUT VICTORIALOGS"); without != (c.Victoria == "") {
		t.Errorf("without VictoriaLogs: %t\n%s", without, text)
	}
	if made, _ := filepath.Glob(filepath.Join(c.Profiles, "*")); len(made) <= len(questions) { // and of storing
		t.Errorf("%d profiles", len(made))
	}
}

// Answers of VictoriaLogs are read as Weir's are: times of a page, or numbers
// by value or by bucket and level.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		text string
		of   *count
		want string
	}{
		{`{"_time":"2026-11-20T00:00:01.5Z","_msg":"a"}` + "\n" + `{"_time":"2026-11-20T00:00:01Z","_msg":"b"}`, nil, "2 entries, [1795132801500 1795132801000]"},
		{`{"metadata.host":"a","entries":"3"}` + "\n" + `{"metadata.host":"","entries":"1"}`, &count{by: "metadata.host"}, "2 counts, map[:1 a:3]"},
		{`{"_time":"2026-11-20T00:15:00Z","level":"info","entries":"3"}`, &count{every: time.Minute}, "1 counts, map[2026-11-20T00:15:00Z info:3]"},
		{`{"entries":"7"}`, new(count), "1 counts, map[:7]"},
	} {
		if got, err := read([]byte(c.text), c.of); err != nil || got.String() != c.want {
			t.Errorf("%s is read as %s, %v", c.text, got, err)
		}
	}
}

// Different answers fail a run, whatever they took.
func TestAnswersAreCompared(t *testing.T) {
	r := &result{stored: []stored{{store: "Weir", cpu: make([]time.Duration, 2)}}, differ: []string{"level: 1 and 2"}}
	var out bytes.Buffer
	if err := r.print(&out); err == nil || !strings.Contains(err.Error(), "level: 1 and 2") {
		t.Errorf("%v", err)
	}
}
