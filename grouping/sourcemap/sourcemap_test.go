package sourcemap_test

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"strings"
	"testing"

	reference "github.com/go-sourcemap/sourcemap"

	"github.com/weirlog/weir/grouping/internal/groupingtest"
	"github.com/weirlog/weir/grouping/sourcemap"
)

func mustRead(t testing.TB, text string) *sourcemap.Map {
	t.Helper()
	m, err := sourcemap.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func fixture(t testing.TB, bundler string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + bundler + ".min.js.map")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// find finds a place in the part where it is, as the database does.
func find(t testing.TB, m *sourcemap.Map, line, column int) sourcemap.Original {
	t.Helper()
	place := sourcemap.Place{Line: line, Column: column}
	at := place.FromZero()
	last := -1
	for i, p := range m.Parts {
		if p.Line < at[0] || p.Line == at[0] && p.Column <= at[1] {
			last = i
		}
	}
	if last < 0 {
		return sourcemap.Original{}
	}
	found, err := sourcemap.Find(m.Parts[last].Data, m.Parts[last].Line, []sourcemap.Place{place})
	if err != nil {
		t.Fatal(err)
	}
	return found[0]
}

// What bundlers write is found as a widely used library finds it.
func TestRealMaps(t *testing.T) {
	for _, bundler := range []string{"esbuild", "terser"} {
		text := fixture(t, bundler)
		m, known := mustRead(t, text), 0
		other, err := reference.Parse("", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for column := range 500 {
			source, name, line, from, ok := other.Source(1, column)
			got, want := find(t, m, 1, column+1), sourcemap.Original{}
			if ok && column >= 6 { // before the first segment, and of segments without a source, the library is wrong
				want = sourcemap.Original{Source: strings.TrimPrefix(source, "../"), Name: name, Line: line, Column: from + 1}
			}
			if got != want && got != (sourcemap.Original{}) {
				t.Fatalf("%s, column %d: %+v, want %+v", bundler, column+1, got, want)
			}
			if got.Source != "" {
				known++
			}
		}
		if known < 300 {
			t.Errorf("%s: %d places are known", bundler, known)
		}
	}
}

// Places in maps made by hand.
func TestFind(t *testing.T) {
	const plain = `{"version":3,"sources":["a.ts"],"names":["total"],"mappings":"AAAA,EAAEA,K;;IACA"}`
	section := func(line, column int, inner string) string {
		return fmt.Sprintf(`{"offset":{"line":%d,"column":%d},"map":%s}`, line, column, inner)
	}
	sections := `{"version":3,"sections":[` + section(0, 10, plain) + "," + section(7, 0, strings.ReplaceAll(plain, "a.ts", "b.ts")) + `]}`
	at := func(source string, line, column int, name string) sourcemap.Original {
		return sourcemap.Original{Source: source, Line: line, Column: column, Name: name}
	}
	none := sourcemap.Original{}
	for _, c := range []struct {
		name, text   string
		line, column int
		want         sourcemap.Original
	}{
		{"at a segment", plain, 1, 1, at("a.ts", 1, 1, "")},
		{"between two", plain, 1, 2, at("a.ts", 1, 1, "")},
		{"with a name", plain, 1, 3, at("a.ts", 1, 3, "total")},
		{"where nothing was written", plain, 1, 9, none},
		{"a line without segments", plain, 2, 1, none},
		{"before the first of a line", plain, 3, 2, none},
		{"behind the last of a line", plain, 3, 900, at("a.ts", 2, 3, "")},
		{"behind the last line", plain, 4, 1, none},
		{"before a section", sections, 1, 9, none},
		{"in a section, on its first line", sections, 1, 13, at("a.ts", 1, 3, "total")},
		{"in a section, below", sections, 3, 5, at("a.ts", 2, 3, "")},
		{"in the next section", sections, 8, 1, at("b.ts", 1, 1, "")},
		{"of a null source", strings.Replace(plain, `"a.ts"`, "null", 1), 1, 1, none},
		{"behind a guard", ")]}'\n" + plain, 1, 1, at("a.ts", 1, 1, "")},
		{"with escapes", strings.Replace(plain, "AAAA", `\u0041AAA`, 1), 1, 1, at("a.ts", 1, 1, "")},
		{"with a root", strings.Replace(plain, `"names"`, `"sourceRoot":"webpack://shop/src","names"`, 1), 1, 1, at("src/a.ts", 1, 1, "")},
		{"of a hostile name", strings.Replace(plain, "a.ts", `../../../a\u0000\ud800.ts`, 1), 1, 1, at("a\x00\uFFFD.ts", 1, 1, "")},
	} {
		if got := find(t, mustRead(t, c.text), c.line, c.column); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}

// A map of many parts is found in as one is.
func TestParts(t *testing.T) {
	var mappings strings.Builder
	const lines, columns = 3, 5000
	for line := range lines {
		mappings.WriteString(strings.Repeat("CAAC,", columns)[:columns*5-1]) // each a column further
		if line < lines-1 {
			mappings.WriteString(";AAAA,")
		}
	}
	m := mustRead(t, `{"version":3,"sources":["a.ts"],"names":[],"mappings":"`+mappings.String()+`"}`)
	if len(m.Parts) != 4 || m.Segments != lines*columns+lines-1 {
		t.Fatalf("%d parts of %d segments", len(m.Parts), m.Segments)
	}
	for line := range lines {
		for _, column := range []int{1, 4095, 4096, 4097, columns} {
			if got := find(t, m, line+1, column+1); got.Column != line*columns+column+1 {
				t.Errorf("line %d, column %d: %+v", line+1, column+1, got)
			}
		}
	}
	places := []sourcemap.Place{{Line: 1, Column: 2}, {Line: 1, Column: 2}, {Line: 1, Column: 4000}}
	if got, err := sourcemap.Find(m.Parts[0].Data, m.Parts[0].Line, places); err != nil || got[0] != got[1] || got[2].Column != 4000 {
		t.Errorf("together: %+v, %v", got, err)
	}
}

// Maps that are none, or hostile, are refused with what is wrong.
func TestFaults(t *testing.T) {
	mapped := func(mappings string) string {
		return `{"version":3,"sources":["a"],"names":["b"],"mappings":"` + mappings + `"}`
	}
	for text, want := range map[string]string{
		"":                            "not one JSON object",
		"[]":                          "it is not an object",
		`{"version":3`:                "not one JSON object",
		`{"version":3} {}`:            "not one JSON object",
		`{"version":2,"mappings":""}`: "Only 3 is known",
		`{"version":3}`:               "has no mappings",
		`{"version":3,"mappings":7}`:  "has no mappings",
		`{"version":3,"mappings":"A","names":{}}`: "where a list is expected",
		mapped(""):          "its mappings are empty",
		mapped(";;;,,"):     "its mappings are empty",
		mapped("AA"):        "has 2 numbers",
		mapped("AAAAAA"):    "more than 5 numbers",
		mapped("A*"):        "not part of a number",
		mapped("AAAg"):      "end within a number",
		mapped("gggggggB"):  "not part of a number",
		mapped("AACA"):      "", // of the second line
		mapped("ACAA"):      "names source 1, and there are 1",
		mapped("ADAA"):      "names source -1",
		mapped("AAAAC"):     "uses name 1",
		mapped("AADA"):      "not in any source",
		mapped("EAAA,DAAA"): "goes back",
		mapped("DAAA"):      "not in any script",
		`{"version":3,"sections":[{"offset":{"line":0,"column":0}}]}`:                                   "has no map",
		`{"version":3,"sections":[{"offset":{"line":-1,"column":0},"map":` + mapped("AAAA") + `}]}`:     "offset is not valid",
		`{"version":3,"sections":[{"offset":{"line":1e99,"column":0},"map":` + mapped("AAAA") + `}]}`:   "can't be read",
		`{"version":3,"sections":[{"offset":{"line":0,"column":0},"map":{"version":3,"sections":[]}}]}`: "sections of its own",
		`{"version":3,"sections":[` + strings.Repeat(`{"offset":{"line":9,"column":0},"map":`+mapped("AAAA")+`},`, 1) +
			`{"offset":{"line":1,"column":0},"map":` + mapped("AAAA") + `}]}`: "begins before the end",
		`{"version":3,"names":[` + strings.Repeat(`"",`, 500_000) + `""],"mappings":"AAAA"}`: "more than 500000 names",
		strings.Repeat(" ", sourcemap.MaxText) + "{}":                                        "more than 33554432 bytes",
	} {
		m, err := sourcemap.Read([]byte(text))
		switch {
		case want == "" && err != nil:
			t.Errorf("%.80s: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%.80s: %+v, %v, want %q", text, m, err, want)
		}
	}
}

// Scripts are named by their path.
func TestNames(t *testing.T) {
	for address, want := range map[string]string{
		"https://shop.example/static/app.js?v=3#x": "~/static/app.js", "~/static/app.js": "~/static/app.js", "static/app.js": "~/static/app.js",
		"/srv/shop/dist/app.js": "~/srv/shop/dist/app.js", "file:///srv/app.js": "~/srv/app.js", "app:///main.jsbundle": "~/main.jsbundle",
		`C:\shop\app.js`: "~/C:/shop/app.js", "~/a/../b.js": "~/b.js", "https://shop.example": "~/", "http://[::1]:80/a.js": "~/a.js",
	} {
		if got := sourcemap.ScriptName(address); got != want {
			t.Errorf("%s is named %s, want %s", address, got, want)
		}
	}
	for id, want := range map[string]string{
		"85314830-023F-4CF1-A267-535F4E37BB17": "85314830023f4cf1a267535f4e37bb17", "85314830023f4cf1a267535f4e37bb17": "85314830023f4cf1a267535f4e37bb17",
		"": "", "85314830": "", "g5314830023f4cf1a267535f4e37bb17": "",
	} {
		if got := sourcemap.DebugID(id); got != want {
			t.Errorf("%q is the debug id %q, want %q", id, got, want)
		}
	}
	m := mustRead(t, `{"version":3,"debugId":"85314830-023f-4cf1-a267-535f4e37bb17","sources":["a"],"names":[],"mappings":"AAAA"}`)
	if m.DebugID == "" {
		t.Error("the map has no debug id")
	}
}

// Whatever is read is found without a fault, inside the sources.
func FuzzRead(f *testing.F) {
	f.Add([]byte(fixture(f, "esbuild")))
	f.Add([]byte(`{"version":3,"sections":[{"offset":{"line":0,"column":3},"map":{"version":3,"sources":["a"],"names":["b"],"mappings":"AAAAA,E;AAAA"}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		before := bytes.Clone(text)
		m, err := sourcemap.Read(text)
		if !bytes.Equal(before, text) {
			t.Fatal("the text has changed")
		}
		if err != nil {
			return
		}
		for i, p := range m.Parts {
			if i > 0 && (p.Line < m.Parts[i-1].Line || p.Line == m.Parts[i-1].Line && p.Column < m.Parts[i-1].Column) {
				t.Fatalf("part %d begins before the one before", i)
			}
			found, err := sourcemap.Find(p.Data, p.Line, []sourcemap.Place{{Line: int(p.Line) + 1, Column: int(p.Column) + 1}})
			if err != nil {
				t.Fatal(err)
			}
			if o := found[0]; o.Source == "" && o.Line != 0 || path.Clean(o.Source) != o.Source && o.Source != "" {
				t.Fatalf("found %+v", o)
			}
		}
	})
}

// Broken parts are faults, not crashes.
func FuzzFind(f *testing.F) {
	m := mustRead(f, fixture(f, "terser"))
	f.Add(m.Parts[0].Data, 1, 100)
	f.Fuzz(func(_ *testing.T, data []byte, line, column int) {
		_, _ = sourcemap.Find(data, 0, []sourcemap.Place{{Line: line, Column: column}})
	})
}

func BenchmarkRead20MB(b *testing.B) {
	text := groupingtest.LargeMap()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sourcemap.Read(text); err != nil {
			b.Fatal(err)
		}
	}
}
