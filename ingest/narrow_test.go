package ingest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
)

// The term of any value finds an entry with it, alone and beside any
// query; after a dash it finds all but these.
func TestTermsFindTheirValue(t *testing.T) {
	for _, value := range []string{"42", "a b", `say "hi"`, `c:\temp`, "10.0.0.1:8080", "", "*", ">5", "(x)", "-1", "é", "OR", "true"} {
		for _, path := range []string{"metadata.v", "v", "NOT", "a-b"} {
			term, ok := ingest.Term(path, value)
			if !ok {
				t.Errorf("there is no term for %s of %q", path, value)
				continue
			}
			name := strings.TrimPrefix(path, "metadata.")
			with := ingest.Stored{Level: ingest.SeverityInfo, Text: fmt.Appendf(nil, `{"message":"m","metadata":{%q:%q}}`, name, value)}
			without := ingest.Stored{Level: ingest.SeverityInfo, Text: fmt.Appendf(nil, `{"message":"m","metadata":{%q:%q}}`, name, value+"x")}
			for _, before := range []string{"", "m", "x OR m", "level:info"} {
				for sign, wanted := range map[string]*ingest.Stored{"": &with, "-": &without} {
					q := query(query(before).And(sign + term))
					if !q.Matches(wanted) || q.Matches(&with) && q.Matches(&without) {
						t.Errorf("%s finds the wrong entries", q)
					}
				}
			}
		}
	}
	for _, path := range []string{"", "a b", "a:b", `a"b`, "a*", "(a", "exists", "project", "<a", "-a", "a\tb", "metadata.a\u00a0b"} {
		if term, ok := ingest.Term(path, "v"); ok {
			t.Errorf("%q has the term %s", path, term)
		}
	}
	if term, ok := ingest.Term("v", strings.Repeat("x", 3000)); ok {
		t.Errorf("a value of 3000 bytes has the term %.20s…", term)
	}
}

func TestMark(t *testing.T) {
	for _, c := range []struct{ query, message, want string }{
		{"", "a b", "a b"},
		{"timeout", "Timeout: no TIMEOUTs, timeout", "[Timeout]: no TIMEOUTs, [timeout]"},
		{"time*", "Timeout in time", "[Timeout] in [time]"},
		{`"no route" -host level:error`, "no route to host", "[no] [route] to host"},
		{"東", "東京 tower", "[東]京 tower"},
		{"a OR (b c)", "a-b/c d", "[a]-[b]/[c] d"},
		{"metadata.a:b", "b", "b"},
		{"straße", "Straße STRASSE", "[Straße] STRASSE"},
	} {
		var got strings.Builder
		for _, piece := range query(c.query).Mark(c.message) {
			if piece.Marked {
				got.WriteString("[" + piece.Text + "]")
			} else {
				got.WriteString(piece.Text)
			}
		}
		if got.String() != c.want {
			t.Errorf("%s marks %s, want %s", c.query, got.String(), c.want)
		}
	}
}
