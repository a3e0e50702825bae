package http

import (
	"net/http"
	"testing"
)

// Only a preference of its own sets the handling, not text inside
// another's quoted value.
func TestPrefer(t *testing.T) {
	for _, c := range []struct {
		values  []string
		strict  bool
		applied string
	}{
		{nil, false, ""},
		{[]string{"handling=strict"}, true, "handling=strict"},
		{[]string{`respond-async, Handling = "Strict"; x=y`}, true, "handling=strict"},
		{[]string{`handling="str\ict"`}, true, "handling=strict"},
		{[]string{"wait=10", "handling=strict"}, true, "handling=strict"},
		{[]string{"handling=lenient, handling=strict"}, false, "handling=lenient"},
		{[]string{"handling=other"}, false, ""},
		{[]string{`foo="a, handling=strict"`}, false, ""},
		{[]string{`foo="a\", handling=strict"`}, false, ""},
		{[]string{`foo="a\\", handling=strict`}, true, "handling=strict"},
		{[]string{`foo; x="a, handling=strict"`}, false, ""},
		{[]string{`foo="`, "handling=strict"}, true, "handling=strict"},
	} {
		asked, err := readHeaders(http.Header{"Content-Type": {"application/json"}, "Prefer": c.values}, false)
		if err != nil || asked.strict != c.strict || asked.preferred != c.applied {
			t.Errorf("%q: strict %t, applied %q, %v", c.values, asked.strict, asked.preferred, err)
		}
	}
}
