package history_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

var words = []string{
	"timeout", "Timeout", "TIMEOUT", "foo_bar", "a-b", "café", "CAFÉ", "naïve", "日本", "東京", "straße", "ΣΊΣΥΦΟΣ", "σίσυφος", "Kelvin", "\u212Aelvin", "ſharp", "İstanbul",
	"x" + strings.Repeat("y", 70), strings.Repeat("é", 40), "10.5", "1e3", "a\nb", "tab\tbed", `quo"ted`, `back\slash`, "nul\x00l", "em—dash", "u2028\u2028x", "😀", "e\u0301",
}

func someText(random *rand.Rand) string {
	var text []string
	for range 1 + random.IntN(4) {
		text = append(text, words[random.IntN(len(words))])
	}
	return strings.Join(text, []string{" ", ":", "/", ""}[random.IntN(4)])
}

// encoded is a string in JSON, of whose characters some are escaped though they need not be.
func encoded(random *rand.Rand, text string) string {
	escape := random.IntN(3)
	var b strings.Builder
	for _, r := range text {
		switch {
		case r < ' ' || r == '"' || r == '\\' || escape == 1 && r > '~' || escape == 2 && random.IntN(3) == 0:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		case r == '/' && escape > 0:
			b.WriteString(`\/`)
		default:
			b.WriteRune(r)
		}
	}
	return `"` + b.String() + `"`
}

func someEntry(random *rand.Rand) string {
	value := func() string {
		switch random.IntN(6) {
		case 0:
			return []string{"1.50", "1e3", "1000", "-7", "true", "null"}[random.IntN(6)]
		case 1:
			return "[" + encoded(random, someText(random)) + "," + encoded(random, words[random.IntN(len(words))]) + "]"
		case 2:
			return `{"deep":` + encoded(random, words[random.IntN(len(words))]) + `}`
		}
		return encoded(random, someText(random))
	}
	return `{"message":` + encoded(random, someText(random)) + `,"metadata":{"service":` + value() + `,` + encoded(random, "naïve") + `:` + value() + `}}`
}

func someQuery(random *rand.Rand, depth int) string {
	quoted := func(text string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
	}
	star := func(text string) string {
		return []string{"", "", "*"}[random.IntN(3)] + text + []string{"", "", "*"}[random.IntN(3)]
	}
	switch random.IntN(9) {
	case 0, 1:
		if depth < 3 {
			return "(" + someQuery(random, depth+1) + []string{" ", " OR ", " AND "}[random.IntN(3)] + someQuery(random, depth+1) + ")"
		}
	case 2:
		if depth < 3 {
			return "NOT " + someQuery(random, depth+1)
		}
	case 3:
		return []string{"service", "metadata.service", "naïve", "service.deep"}[random.IntN(4)] + ":" + quoted(someText(random))
	case 4:
		return "service:" + quoted(words[random.IntN(len(words))])
	case 5:
		return []string{"level:error", "environment:PROD", "exists:service.deep", "service:>1.2", "service:1e3", "service:true", "-level:info"}[random.IntN(7)]
	case 6:
		return star("time") + " " + star("caf")
	case 7:
		return "service:" + star("el")
	}
	return quoted(someText(random))
}

// A search in ClickHouse finds what a plain loop finds, whatever escapes, letters and
// cases there are: its conditions leave out no match.
func TestConditionsLeaveOutNoMatch(t *testing.T) {
	r := newRig(t)
	random := testenv.Random(t, 7)
	for range 30 {
		var entries []ingest.Stored
		for range 30 {
			text := someEntry(random)
			if !json.Valid([]byte(text)) {
				t.Fatalf("a faulty test: %s", text)
			}
			entries = append(entries, r.entry(random.Int64N(100_000), text))
		}
		r.keep(fmt.Sprint("prj_", random.IntN(3)), entries...)
	}
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	matched := 0
	for range testenv.Rounds(t, 50, 500) {
		text := someQuery(random, 0)
		query, err := ingest.ParseQuery(text)
		if err != nil {
			continue // such as a term without a word
		}
		search := ingest.Search{Query: query, Limit: 400}
		want := filter(r.all, search)
		matched += len(want)
		if found := r.pageThrough(search); !slices.Equal(found, want) {
			missing := slices.DeleteFunc(slices.Clone(want), func(w string) bool { return slices.Contains(found, w) })
			t.Fatalf("%s: found %d entries, want %d; missing %q", text, len(found), len(want), missing[:min(1, len(missing))])
		}
		counted, err := r.store().Count(t.Context(), "org_1", ingest.Count{Search: ingest.Search{Query: query}}, 1)
		if err != nil || counted.Levels.Sum() != int64(len(want)) {
			t.Fatalf("%s: counted %d entries, want %d, %v", text, counted.Levels.Sum(), len(want), err)
		}
	}
	t.Logf("%d matches", matched)
}

// What the database counts of the values of fields is what a plain loop counts,
// whatever JSON holds them.
func TestFieldsAreCountedAsTheyAre(t *testing.T) {
	r := newRig(t)
	random := testenv.Random(t, 8)
	odd := []string{
		`{"message":"service","metadata":{"service":"a/b"}}`, `{"service":"top","metadata":{"service":"below"}}`, `{"metadata":{"service":{"service":"deep"}}}`,
		`{"metadata":[{"service":"in an array"},{"service":"and another"}]}`, `{"metadata":{"service":"1"},"metadata":{"service":"2"}}`, `{"metadata.service":"dots"}`,
		`{"metadata":{"x.service":"dots"}}`, `{"error":{"context":{"service":"elsewhere"}}}`, `{"metadata":{"service":1e400}}`, `{"metadata":{"service":-0.0}}`,
		`{"metadata":{"service":12345678901234567890123}}`, `{"metadata":{"service":""}}`, `{"metadata":{"service":[1,"1",[2],{"service":3}]}}`, `{"metadata":{"metadata":{"service":"two"}}}`,
		`{"metadata":{"service":"\u0061"}}`, `{"metadata":{"s\u0065rvice":"name"}}`, `{"metadata":{"service":"` + strings.Repeat("x", 300) + `"}}`, `{"metadata":{"service":"日本"}}`, `{}`,
		`{"metadata":{"service":"x","other":"service"}}`, `{"metadata":{"service":false}}`, `{"metadata":{"service":null}}`, `{"metadata":{"service":"a,b}"}}`, `{"metadata":{"service":10},"n":1}`,
	}
	for range 20 {
		var entries []ingest.Stored
		for range 20 {
			text := odd[random.IntN(len(odd))]
			if random.IntN(12) == 0 {
				text = someEntry(random)
			}
			entries = append(entries, r.entry(random.Int64N(100_000), text))
		}
		r.keep(fmt.Sprint("prj_", random.IntN(3)), entries...)
	}
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	compared := 0
	names := []string{"service", "metadata.service", "metadata.metadata.service", "service.service", "naïve", "other", "n", "project", "level", `qu\ote`, "error.context.service", "service.deep"}
	for range testenv.Rounds(t, 40, 400) {
		count := ingest.Count{Search: ingest.Search{From: &ingest.Instant{Seconds: random.Int64N(50_000), Nanos: 5}, To: &ingest.Instant{Seconds: 100_000}}}
		if random.IntN(2) == 0 {
			count.Every = 1000 * time.Second
		}
		for range 1 + random.IntN(2) {
			field, err := ingest.ParseField(names[random.IntN(len(names))])
			testenv.Must(t, err)
			count.By = append(count.By, field)
		}
		if random.IntN(3) == 0 {
			count.Search.Levels = ingest.SeveritySet(0).With(ingest.SeverityWarn)
		}
		want := count.NewCounter()
		for i := range r.all {
			want.Add([]ingest.Stored{r.all[i].Stored}, r.all[i].Project)
		}
		got, err := r.store().Count(t.Context(), "org_1", count, ingest.MaxValues)
		testenv.Must(t, err)
		got.Read = 0
		plain := want.Result(ingest.MaxValues)
		if slices.ContainsFunc(append(got.Fields, plain.Fields...), func(f ingest.FieldCounts) bool { return f.Uncertain > 0 }) {
			continue // the order in which they come makes a difference
		}
		compared++
		if fmt.Sprint(got) != fmt.Sprint(plain) {
			t.Fatalf("by %v: counted\n%+v, want\n%+v", count.By, got.Fields, plain.Fields)
		}
	}
	t.Logf("%d counts", compared)
}

// Texts come back byte for byte, whatever they are, and so do their times.
func TestTextsComeBackByteForByte(t *testing.T) {
	r := newRig(t)
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	long := bytes.Repeat([]byte("a long entry\\u00e9 \xff\xfe"), 60_000)
	var entries []ingest.Stored
	for i, text := range []string{"{}", string(every), "\x00", `{"message":"\ud800 ' \\ \n"}`, string(long), "'); DROP TABLE entries; --", "\t\\N\n"} {
		e := r.entry(int64(i), text)
		e.Time = []ingest.Instant{{Seconds: -62_135_596_800, Nanos: 1}, {Seconds: 253_402_300_799, Nanos: 999_999_999}, {}}[i%3]
		e.ReceivedAt = noon.Add(time.Duration(i))
		e.Environment = text[:min(len(text), 50)]
		entries = append(entries, e)
	}
	r.keep(`prj_'\`, entries...)
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	r.isAway()
	for _, e := range entries {
		search := ingest.Search{Environment: e.Environment, Project: `prj_'\`, Limit: 10}
		if found, want := r.pageThrough(search), filter(r.all, search); !slices.Equal(found, want) {
			t.Errorf("by the environment %q: found %d entries, want %d", e.Environment, len(found), len(want))
		}
	}
}

// The row policy shows an organization its own entries, and who names none nothing.
func TestRowsAreOfOneOrganization(t *testing.T) {
	r := newRig(t)
	r.keepSome(3)
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	for organization, want := range map[string]string{"": "0", "org_1": "9", "org_2": "0", "*": "9"} {
		if got := r.ask(organization, `SELECT count() FROM entries`); got != want {
			t.Errorf("%q sees %s entries, want %s", organization, got, want)
		}
	}
}

// A search that takes too long at once goes window by window, and ends at its
// share with a cursor from which it goes on.
func TestSearchesGoWindowByWindow(t *testing.T) {
	r := newRig(t)
	for i := range int64(20) {
		r.keep("prj_1", r.entry(i*i*5000, ""), r.entry(-i*1_000_000, ""), r.entry(i, ""))
	}
	testenv.Must(t, r.mover(r.rows).RunOnce(t.Context()))
	proxy, rows := r.between()
	r.rows = rows
	for _, search := range []ingest.Search{{Limit: 7}, {Limit: 7, OldestFirst: true}, {Limit: 100, From: &ingest.Instant{}, To: &ingest.Instant{Seconds: 50_000}}} {
		proxy.on("SELECT project", slow)
		if found, want := r.pageThrough(search), filter(r.all, search); !slices.Equal(found, want) {
			t.Errorf("found %d entries, want %d", len(found), len(want))
		}
	}
	proxy.on("SELECT toString", slow)
	counted, err := r.store().Count(t.Context(), "org_1", ingest.Count{}, 1)
	if err != nil || counted.Levels.Sum() != int64(len(r.all)) || counted.From != nil {
		t.Errorf("counted %d entries, want %d, exact after %v, %v", counted.Levels.Sum(), len(r.all), counted.From, err)
	}
}
