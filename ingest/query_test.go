package ingest_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/testenv"
)

func query(text string) ingest.Query {
	parsed, err := ingest.ParseQuery(text)
	if err != nil {
		panic(err)
	}
	return parsed
}

// checkout is an entry with what queries ask for.
var checkout = ingest.Stored{Level: ingest.SeverityError, Environment: "prod", Text: []byte(`{"timestamp":"2026-11-21T09:30:00Z","level":"error",` +
	`"message":"Payment FAILED at checkout: no route to host (E42)","metadata":{"status":503,"ms":12.5,"user":{"id":"U-42"},"http.route":"/carts/:id",` +
	`"tags":["a",{"b":"c"}],"ok":false,"none":null,"quote":"say \"hi\"","region":"Zürich"},"error":{"type":"TimeoutError","stack_trace":["main.go:7"]},"service":"shop"}`)}

func TestQueries(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "checkout failed": true, "checkout absent": false, "fail": false, "fail*": true, "*led": true, "*out*": true, "e42": true,
		`"no route to host"`: true, `"route no"`: false, `"payment failed" e42`: true, `"at check*"`: false, "no-route": true, "route-no": false,
		"message:checkout": true, `message:"at checkout"`: true,
		"level:error": true, "level:ERROR": true, "level:warn": false, "-level:warn": true, "NOT level:error": false,
		"environment:PROD": true, "environment:pr*": true, "environment:staging": false,
		"metadata.status:503": true, "status:503": true, "status:50*": true, "status:50": false, "503": false,
		"metadata.user.id:u-42": true, "user.id:U-42": true, "user:*": false, "metadata.http.route:/carts/:id": true, "http.route:/carts*": true,
		"tags:a": true, "tags.b:c": true, "tags:c": false, "ok:false": true, "none:null": true, `quote:"say \"hi\""`: true, "region:ZÜRICH": true,
		"error.type:TimeoutError": true, "error.type:*error": true, "error.stack_trace:main.go*": true, "type:TimeoutError": false, "service:shop": true,
		"status:>500": true, "status:>=503": true, "status:<503": false, "status:<=503": true, "ms:>12.4": true, "user.id:>0": false, `status:">500"`: false,
		"exists:status": true, "exists:none": false, "exists:user": true, "exists:trace": false, "-exists:trace": true,
		"absent OR checkout": true, "absent OR other": false, "checkout OR absent absent": true, "(checkout OR absent) absent": false,
		`error.message:*"route to"*`: false, `quote:*"\"h"*`: true, "metadata.error.type:x": false, "user.error:x": false, "-(-checkout)": true, "--absent": false,
		"absent\u00a0OR\u3000checkout": true, `absent OR"checkout"`: true,
		"checkout AND failed": true, "checkout and failed": false, "-(absent OR other)": true, "-absent -other": true, "((checkout))": true, "route(host)": true,
	} {
		if got := query(text).Matches(&checkout); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
}

// Letters that differ by case alone are the same, in a filter too.
func TestCase(t *testing.T) {
	for query1, message := range map[string]string{"οδος": "ΟΔΟΣ", "ΟΔΟΣ": "οδος", "fiS": "fiſ", "\u212a": "k", "ID": "ユーザーID", "ユーザー": "ユーザーID", "istanbul": "ISTANBUL"} {
		entry := ingest.Stored{Text: fmt.Appendf(nil, `{"message":%q,"metadata":{"v":%q}}`, message, message)}
		var builder ingest.Builder
		builder.Add(entry)
		header := builder.Build().Header
		for _, q := range []string{query1, "v:*" + query1 + "*"} {
			if !query(q).Matches(&entry) || !query(q).MayMatch(&header) {
				t.Errorf("%s does not find %s", q, message)
			}
		}
	}
}

// An entry is found wherever a word stands in it, however JSON writes it, and
// with whatever characters whose lower case is a letter of ASCII.
func TestEntriesAreNotSkippedThatMatch(t *testing.T) {
	for padding := range 1100 {
		entry := ingest.Stored{Text: fmt.Appendf(nil, `{"message":"%s Order-4711 FAILED","metadata":{"Order":7}}`, strings.Repeat("é", padding))}
		for _, text := range []string{"4711", "failed", "*aile*", `"order 4711"`, "metadata.Order:>6", "exists:Order"} {
			if !query(text).Matches(&entry) {
				t.Fatalf("%s is not found behind %d characters", text, padding)
			}
		}
	}
	for written, text := range map[string]string{
		`f\u0061iled`: "failed", `\u0046AILED`: "failed", `a\/b`: `"a b"`, `a\nb`: `"a b"`, `\"b\"`: "b", `\u0034711`: "4711",
	} {
		entry := ingest.Stored{Text: []byte(`{"message":"` + written + `"}`)}
		if !query(text).Matches(&entry) {
			t.Errorf("%s is not found in %s", text, written)
		}
	}
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		lower := unicode.ToLower(unicode.ToUpper(r))
		entry := ingest.Stored{Text: []byte(`{"metadata":{"v":"` + string(r) + `"}}`)}
		if lower < 0x80 && !query("v:"+string(lower)).Matches(&entry) {
			t.Errorf("%c is not found in %c", lower, r)
		}
	}
}

// Words decide beside levels, too.
func TestQueriesThatNeedWords(t *testing.T) {
	for text, want := range map[string]bool{
		"": false, "level:error": false, "timeout": true, "-timeout": false, "time*": false, "(level:error timeout) OR level:fatal": true, "status:503": true, "status:>5": false,
	} {
		if got := len(query(text).WordHashes()) > 0; got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// A fault is at its character, and says how to mend the query.
func TestFaultyQueries(t *testing.T) {
	for text, at := range map[string]int{
		"é level:loud": 3, "level:": 7, "?!": 1, `a "b`: 3, "(a": 1, "a)": 2, "a ()": 3, "OR a": 1, "a OR": 2, "a OR OR b": 2, "-": 1, "a - b": 3, "-)": 1,
		"status:>many": 1, "status:>": 1, ":a": 1, "12:30:05": 1, "https://example.com": 1, "level:err*": 1,
		strings.Repeat("a ", 33): 65, strings.Repeat("(", 17) + "a" + strings.Repeat(")", 17): 17, strings.Repeat("a", 2001): 2000,
		`"` + strings.Repeat("a ", 33) + `"`: 1, "-\u3000": 1, "-\u00a0a": 1, "!health": 1, "status=503": 1, "status>500": 1, "status:!=5": 1, "status:=5": 1, "10.0.0.1:80": 1,
		"2026-01-31T12:00:00Z": 1, "a || b": 3, "a && b": 3, "exists:user.*": 1, "exists:*": 1, "us*r:42": 1, "time*out": 1, "a:b*c": 1, "AND": 1, "a AND": 3, "a:>nan": 1, "a:>inf": 1,
		strings.Repeat("a.", 17) + "a:1": 1, strings.Repeat("é", 1001): 1000, "level:(error OR warn)": 7,
	} {
		_, err := ingest.ParseQuery(text)
		var fault *ingest.QueryError
		if !errors.As(err, &fault) || fault.At != at || fault.Detail == "" || fault.Fix == "" {
			t.Errorf("%.40s: %v, want a fault at character %d", text, err, at)
		}
	}
}

// The page of the language has only queries that can be read.
func TestSearchingPage(t *testing.T) {
	page, err := os.ReadFile("docs/searching.md")
	testenv.Must(t, err)
	queries, _, found := strings.Cut(string(page), "## Counting")
	if !found {
		t.Fatal("the page has no part on counting, behind the queries")
	}
	tried := 0
	for _, row := range regexp.MustCompile("(?m)^\\| (`[^|]+) \\|").FindAllStringSubmatch(queries, -1) {
		for _, quoted := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
			tried++
			if _, err := ingest.ParseQuery(quoted[1]); err != nil {
				t.Error(err)
			}
		}
	}
	if tried < 15 {
		t.Errorf("the page has %d queries", tried)
	}
}

func FuzzParseQuery(f *testing.F) {
	f.Add("-\u3000")
	f.Add(`-(a OR "b c*") level:error x.y:>=-1e3 exists:z`)
	f.Fuzz(func(_ *testing.T, text string) {
		if parsed, err := ingest.ParseQuery(text); err == nil {
			parsed.Matches(&checkout)
			parsed.MayMatch(&ingest.Header{})
		}
	})
}

// Queries match what a plain evaluation of the decoded entry matches, and
// no header hides a match.
func TestQueriesAreAPlainEvaluation(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	matched := 0
	for range 20_000 {
		node := someNode(random, 3)
		parsed, err := ingest.ParseQuery(node.text)
		if err != nil {
			t.Fatalf("%s: %v", node.text, err)
		}
		entry := someEntry(random)
		text, err := json.Marshal(entry)
		testenv.Must(t, err)
		level, _ := ingest.ParseSeverity([]byte(entry["level"].(string)))
		stored := ingest.Stored{Level: level, Environment: entry["environment"].(string), Text: text}
		var decoded map[string]any
		testenv.Must(t, json.Unmarshal(text, &decoded))
		got, want := parsed.Matches(&stored), node.holds(decoded)
		if got != want {
			t.Fatalf("%s on %s: %t, want %t", node.text, text, got, want)
		}
		var builder ingest.Builder
		builder.Add(stored)
		if header := builder.Build().Header; got && !parsed.MayMatch(&header) {
			t.Fatalf("%s is hidden by the header of %s", node.text, text)
		}
		if got {
			matched++
		}
	}
	if matched < 2000 || matched > 18_000 {
		t.Errorf("%d of 20000 match: the queries try little", matched)
	}
}

// A node is a query with its plain evaluation.
type node struct {
	text  string
	holds func(entry map[string]any) bool
}

func someEntry(random *rand.Rand) map[string]any {
	value := func() any { return pick[any](random, "a", "B é", "\"\\", 7, 7.5, -3, true, nil, "7") }
	entry := map[string]any{
		"level": pick(random, "debug", "error"), "environment": pick(random, "prod", "Dev"),
		"message": strings.Join([]string{pick(random, "Red", "blue"), pick(random, "fox", "FOX-trot"), pick(random, "東京", "x\"y", "red", "fox-42", "7 fox", "a@fox.org", "x1.red")}, " "),
	}
	metadata := map[string]any{"k": value(), "k.l": value()}
	metadata["m"] = pick[any](random, value(), map[string]any{"n": value(), "k": value()}, []any{value(), map[string]any{"n": value()}, []any{value()}})
	entry["metadata"] = metadata
	if random.IntN(2) == 0 {
		entry["k"] = value()
	}
	return entry
}

func someNode(random *rand.Rand, depth int) node {
	if depth > 0 && random.IntN(2) == 0 {
		a, b := someNode(random, depth-1), someNode(random, depth-1)
		switch random.IntN(3) {
		case 0:
			return node{"(" + a.text + " " + b.text + ")", func(e map[string]any) bool { return a.holds(e) && b.holds(e) }}
		case 1:
			return node{"(" + a.text + " OR " + b.text + ")", func(e map[string]any) bool { return a.holds(e) || b.holds(e) }}
		}
		return node{pick(random, "-", "NOT ") + a.text, func(e map[string]any) bool { return !a.holds(e) }}
	}
	switch random.IntN(5) {
	case 0:
		level := pick(random, "debug", "error")
		return node{"level:" + level, func(e map[string]any) bool { return e["level"] == level }}
	case 1:
		return somePhrase(random)
	case 2:
		path := pick(random, "k", "metadata.k.l", "m.n", "metadata.m")
		return node{"exists:" + path, func(e map[string]any) bool {
			return slices.ContainsFunc(valuesAt(e, path), func(v any) bool { return v != nil })
		}}
	case 3:
		return someComparison(random)
	}
	path, value := pick(random, "k", "m.n", "metadata.k.l", "m"), pick(random, "a", "b é", `"\`, "7", "7.5", "true", "null", "-3")
	return node{path + ":" + strconv.Quote(value), func(e map[string]any) bool {
		return slices.ContainsFunc(valuesAt(e, path), func(v any) bool { return !isNested(v) && strings.ToLower(shown(v)) == value })
	}}
}

var word = regexp.MustCompile(`[\p{L}\p{N}\p{M}]+`)

func somePhrase(random *rand.Rand) node {
	phrase := pick(random, "red", "fox", "red fox", "blue fox trot", "東京", "京", "y", "fo*", "*rot", "fox red")
	return node{`(` + pick(random, "", "message:") + starless(phrase) + `)`, func(e map[string]any) bool {
		words, wanted := wordsOf(e["message"].(string)), strings.Fields(phrase)
		if !strings.Contains(phrase, "*") {
			wanted = wordsOf(phrase)
		}
		for i := 0; i+len(wanted) <= len(words); i++ {
			found := true
			for j, w := range wanted {
				stem := strings.Trim(w, "*")
				found = found && (words[i+j] == w || strings.HasSuffix(w, "*") && strings.HasPrefix(words[i+j], stem) ||
					strings.HasPrefix(w, "*") && strings.HasSuffix(words[i+j], stem))
			}
			if found {
				return true
			}
		}
		return false
	}}
}

func wordsOf(text string) (words []string) {
	for _, run := range word.FindAllString(strings.ToLower(text), -1) {
		if unicode.Is(unicode.Han, []rune(run)[0]) {
			words = append(words, strings.Split(run, "")...)
			continue
		}
		words = append(words, run)
	}
	return words
}

// starless writes a phrase in quotes, unless it has a star.
func starless(phrase string) string {
	if strings.Contains(phrase, "*") {
		return phrase
	}
	return strconv.Quote(phrase)
}

func someComparison(random *rand.Rand) node {
	path, operator, bound := pick(random, "k", "m.n", "m"), pick(random, ">", ">=", "<", "<="), pick(random, 7.0, -3, 7.2)
	return node{fmt.Sprintf("%s:%s%v", path, operator, bound), func(e map[string]any) bool {
		return slices.ContainsFunc(valuesAt(e, path), func(v any) bool {
			n, ok := v.(float64)
			return ok && map[string]bool{">": n > bound, ">=": n >= bound, "<": n < bound, "<=": n <= bound}[operator]
		})
	}}
}

func isNested(v any) bool {
	switch v.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

func shown(v any) string {
	if v == nil {
		return "null"
	}
	return fmt.Sprint(v)
}

// valuesAt are the values at a path, below metadata too.
func valuesAt(entry map[string]any, path string) []any {
	found := at(entry, strings.Split(path, "."))
	if !strings.HasPrefix(path, "metadata") {
		found = append(found, at(entry["metadata"], strings.Split(path, "."))...)
	}
	return found
}

func at(value any, names []string) (found []any) {
	switch value := value.(type) {
	case []any:
		if len(names) == 0 {
			found = append(found, value)
		}
		for _, element := range value {
			found = append(found, at(element, names)...)
		}
		return found
	case map[string]any:
		for i := 1; i <= len(names); i++ {
			if member, ok := value[strings.Join(names[:i], ".")]; ok {
				found = append(found, at(member, names[i:])...)
			}
		}
	}
	if len(names) == 0 {
		found = append(found, value)
	}
	return found
}

// A kept entry can be read back: time, level, decoded message and environment.
func TestReadBack(t *testing.T) {
	entry, err := ingest.ReadBack([]byte(`{"timestamp":"0001-01-01T00:00:00.000000001Z","level":"fatal","message":"a\n\u00e9\ud83d\ude00","environment":"st\u0061ging","error":{}}`))
	testenv.Must(t, err)
	if entry.Time.String() != "0001-01-01T00:00:00.000000001Z" || entry.Level != ingest.SeverityFatal ||
		string(entry.Message) != "a\né😀" || string(entry.Environment) != "staging" || !entry.HasError {
		t.Errorf("got %+v", entry)
	}
	for _, bad := range []string{"", "{}", goodEntry + "\n", " " + goodEntry, goodEntry + "}", goodEntry + goodEntry, `{"a": 1}`, `{"timestamp":"2026-11-21T09:30:00Z","level":"loud","message":""}`, goodEntry[:len(goodEntry)-1]} {
		if _, err := ingest.ReadBack([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// A filter excludes blocks without a value, unless an entry has too many.
func TestValuesAreInTheFilter(t *testing.T) {
	few, many := ingest.Stored{Text: []byte(`{"metadata":{"a":["V1",2],"long":"` + strings.Repeat("x", 100) + `"},"error":{"type":"T","stack_trace":["f"]}}`)}, checkout
	many.Text = []byte(`{"metadata":{"a":[` + strings.Repeat("1,", 99) + `"last"]}}`)
	header := func(entry ingest.Stored) *ingest.Header {
		var builder ingest.Builder
		builder.Add(entry)
		block := builder.Build()
		return &block.Header
	}
	for text, want := range map[string]bool{
		"a:v1": true, "a:2": true, "a:v2": false, "b:v*": true, "a:>3": true, "-a:v2": true, "exists:c": true, "error.type:t": true, "error.type:u": false,
		"long:" + strings.Repeat("x", 100): true, "error.stack_trace:g": true, "timestamp:2026": true, "a:v2 OR a:v1": true, "metadata:v2": false,
	} {
		if got := query(text).MayMatch(header(few)); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
	if !query("a:last").MayMatch(header(many)) {
		t.Error("a value of too many is excluded")
	}
}

// A word is the same in a query and in a message, however long.
func TestLongWords(t *testing.T) {
	for _, word := range []string{strings.Repeat("a", 63) + "éb", strings.Repeat("a", 70), strings.Repeat("é", 40), strings.Repeat("a", 62) + "éb"} {
		entry := ingest.Stored{Level: ingest.SeverityInfo, Text: fmt.Appendf(nil, `{"message":%q}`, word)}
		if !query(word).Matches(&entry) {
			t.Errorf("%s is not found", word)
		}
	}
}

// No text makes a search fail, not even that of a damaged block.
func FuzzDamagedEntry(f *testing.F) {
	f.Add(checkout.Text)
	f.Add([]byte(`{"a":"\\u12","b":[`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		entry := ingest.Stored{Text: text}
		query("a* OR b:c OR exists:d.e OR ms:>1").Matches(&entry)
		var builder ingest.Builder
		builder.Add(entry)
		builder.Build()
	})
}
