package doctor

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// Scripts use the exit status: a failure is 2, only warnings are 1 if strict.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		levels        []Level
		loose, strict int
	}{{nil, 0, 0}, {[]Level{OK}, 0, 0}, {[]Level{OK, Warn}, 0, 1}, {[]Level{Warn, Fail}, 2, 2}, {[]Level{Fail}, 2, 2}} {
		var r Report
		for _, level := range c.levels {
			r.add(level, "check", "subject", "seen", "fix")
		}
		if loose, strict := r.ExitStatus(false), r.ExitStatus(true); loose != c.loose || strict != c.strict {
			t.Errorf("%v: %d and %d, want %d and %d", c.levels, loose, strict, c.loose, c.strict)
		}
	}
}

// Programs read the same as people, and no foreign text controls a
// terminal or shows a credential.
func TestJSON(t *testing.T) {
	r := Report{At: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	key := "weir_" + strings.Repeat("0123456789abcdef", 3)
	r.add(Fail, "broker", "a:9092", "refused\x1b[2J\nby "+key, "Start it.")
	var text strings.Builder
	must(t, r.JSON(&text))
	var read Report
	must(t, json.Unmarshal([]byte(text.String()), &read))
	f := read.Findings[0]
	if f.Check != "broker" || f.Subject != "a:9092" || f.Level != Fail || f.Fix != "Start it." || !read.At.Equal(r.At) {
		t.Errorf("read %+v", read)
	}
	if strings.ContainsAny(f.Seen, "\x1b\n") || strings.Contains(f.Seen, key) || !strings.HasPrefix(f.Seen, "refused [2J by") {
		t.Errorf("seen is %q", f.Seen)
	}
}
