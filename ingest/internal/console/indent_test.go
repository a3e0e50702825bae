package console

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// A text that fits is indented like encoding/json.
func TestIndent(t *testing.T) {
	for _, text := range []string{
		`{"level":"info","message":"a \"quoted\" {text}, [with]: all\\","metadata":{"a":[],"b":{},"c":[1,-2.5e3,null,true,{"d":["ö"]}]}}`, `[]`, `""`, `7`,
	} {
		var want bytes.Buffer
		if err := json.Indent(&want, []byte(text), "", "  "); err != nil {
			t.Fatal(err)
		}
		if got, cut := indent([]byte(text), 1<<10); got != want.String() || cut {
			t.Errorf("%s, cut %t; want %s", got, cut, want.String())
		}
	}
}

// A deeply nested text of half a megabyte would be 50 MB indented: the
// result stays near the limit.
func TestIndentStopsAtItsLimit(t *testing.T) {
	nested := strings.Repeat("[", 118) + strings.Repeat("[1],", 100_000) + "1" + strings.Repeat("]", 118)
	long := `{"long":"` + strings.Repeat("ö", 200_000) + `"}`
	broken := strings.Repeat(`]}`, 1000) + `"\`
	for name, text := range map[string]string{"nested": nested, "long": long, "broken": broken} {
		got, cut := indent([]byte(text), 1000)
		if len(got) > 1003 || !cut || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, cut %t", name, len(got), cut)
		}
	}
	text := []byte(nested)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	indent(text, maxEntry)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 64<<10 {
		t.Errorf("%d bytes are allocated to show %d", allocated, maxEntry)
	}
}
