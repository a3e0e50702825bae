package http

import (
	"bytes"
	"net/http"
	"strings"
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

// Two different keys or content types are refused, whichever comes
// first, and no key is shown; the same one twice is as one.
func TestHeadersThatContradict(t *testing.T) {
	other := "weir_other"
	for name, c := range map[string]struct {
		header string
		values []string
		status int
	}{
		"two keys":                {"X-Api-Key", []string{secret, other}, 400},
		"the other key first":     {"X-Api-Key", []string{other, secret}, 400},
		"a key and an empty one":  {"X-Api-Key", []string{"", secret}, 400},
		"one key twice":           {"X-Api-Key", []string{secret, secret}, 200},
		"two content types":       {"Content-Type", []string{"application/json", "text/plain"}, 400},
		"one content type, twice": {"Content-Type", []string{"application/json", "application/json"}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPost(bytes.NewReader(body(1)))
			r.Header[c.header] = c.values
			w := serve(newIntake(t, &memoryLog{}, plenty), r)
			if w.Code != c.status || c.status == 400 && !strings.Contains(w.Body.String(), `"invalid_request"`) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if text := w.Body.String(); strings.Contains(text, secret) || strings.Contains(text, other) {
				t.Errorf("a key is shown: %s", text)
			}
		})
	}
}
