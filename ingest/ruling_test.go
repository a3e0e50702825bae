package ingest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// A naive evaluator: it decodes an entry, and knows only rules of naiveRules.
var naiveRules = []struct {
	text    string
	matches func(entry map[string]any) bool
	change  func(entry map[string]any) map[string]any // nil: dropped
}{
	{"drop level:debug", hasLevel("debug"), dropped},
	{"drop metadata.k:v1 after the charge", hasValue("v1"), dropped},
	{"redact email", always, mapped("bob@example.com", "[email]")},
	{"redact /secret[0-9]/ in metadata.k, message", always, func(entry map[string]any) map[string]any {
		entry["message"] = strings.ReplaceAll(entry["message"].(string), "secret1", "***")
		if of, is := entry["metadata"].(map[string]any); is {
			if text, is := of["k"].(string); is {
				of["k"] = strings.ReplaceAll(text, "secret1", "***")
			}
		}
		return entry
	}},
	{"set level fatal if level:info", hasLevel("info"), withLevel("fatal")},
	{"set level warn if metadata.k:v2", hasValue("v2"), withLevel("warn")},
	{"set level error if level:warn after the charge", hasLevel("warn"), withLevel("error")},
	{"sample 0.000001% by k if metadata.k:v3", hasValue("v3"), dropped},
}

func always(map[string]any) bool            { return true }
func dropped(map[string]any) map[string]any { return nil }
func hasLevel(level string) func(map[string]any) bool {
	return func(entry map[string]any) bool { return entry["level"] == level }
}

func hasValue(value string) func(map[string]any) bool {
	return func(entry map[string]any) bool {
		of, _ := entry["metadata"].(map[string]any)
		return of["k"] == value
	}
}

func withLevel(level string) func(map[string]any) map[string]any {
	return func(entry map[string]any) map[string]any {
		entry["level"] = level
		return entry
	}
}

func mapped(from, to string) func(map[string]any) map[string]any {
	var visit func(value any) any
	visit = func(value any) any {
		switch v := value.(type) {
		case string:
			return strings.ReplaceAll(v, from, to)
		case []any:
			for i := range v {
				v[i] = visit(v[i])
			}
		case map[string]any:
			for _, name := range slices.Collect(keysOf(v)) {
				of := visit(v[name])
				delete(v, name)
				v[strings.ReplaceAll(name, from, to)] = of
			}
		}
		return value
	}
	return func(entry map[string]any) map[string]any {
		for _, name := range slices.Collect(keysOf(entry)) {
			if name != "level" && name != "timestamp" && name != "environment" {
				of := visit(entry[name])
				delete(entry, name)
				entry[strings.ReplaceAll(name, from, to)] = of
			}
		}
		return entry
	}
}

func keysOf(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

func decodedEntry(t testing.TB, text []byte) (entry map[string]any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&entry); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return entry
}

// randomText has what rules look for, in places that matter.
func randomText(r *rand.Rand) string {
	text := ""
	for range r.IntN(5) {
		text += []string{"<bob@example.com>", "secret1", "v1", "v2", " ", "\"", "\\", "é", "😀", "\n", "plain words", "<"}[r.IntN(12)]
	}
	return text
}

// escaped writes a string as JSON, some of its characters as escape sequences.
func escaped(r *rand.Rand, text string) string {
	var out strings.Builder
	for _, c := range text {
		quoted, _ := json.Marshal(string(c))
		if c < 0x10000 && r.IntN(6) == 0 {
			fmt.Fprintf(&out, `\u%04x`, c)
		} else {
			out.Write(quoted[1 : len(quoted)-1])
		}
	}
	return `"` + out.String() + `"`
}

func randomValue(r *rand.Rand, depth int) string {
	switch n := r.IntN(8); {
	case n == 0 && depth > 0:
		return `{` + escaped(r, "n"+randomText(r)) + `:` + randomValue(r, depth-1) + `}`
	case n == 1 && depth > 0:
		return `[` + randomValue(r, depth-1) + `,` + randomValue(r, depth-1) + `]`
	case n == 2:
		return []string{"1.50", "-0e7", "null", "true", "12345678901234567890"}[r.IntN(5)]
	}
	return escaped(r, randomText(r))
}

func randomEntry(r *rand.Rand) string {
	k := []string{`"v1"`, `"v2"`, `"v3"`, `"v4"`, escaped(r, randomText(r))}[r.IntN(5)]
	entry := fmt.Sprintf(`{"message":%s,"level":%q,"timestamp":"2026-01-31T12:00:00Z"`, escaped(r, randomText(r)), []string{"debug", "info", "warn", "error"}[r.IntN(4)])
	if r.IntN(3) > 0 {
		entry += `,"metadata":{"k":` + k + `,"o":` + randomValue(r, 3) + `}`
	}
	if r.IntN(3) == 0 {
		entry += `,"error":{"message":` + escaped(r, randomText(r)) + `,"context":{"a":` + randomValue(r, 2) + `}}`
	}
	return entry + `,` + escaped(r, "other"+randomText(r)) + `:` + randomValue(r, 2) + `}`
}

// A batch under random rules is what a naive evaluator makes of each entry, and
// is charged what is left before the rules that come after the charge.
func TestRulesMatchANaiveEvaluator(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	var ruler Ruler
	for range 3000 {
		var rules []int
		text := ""
		for range 1 + r.IntN(4) {
			n := r.IntN(len(naiveRules))
			rules, text = append(rules, n), text+naiveRules[n].text+"\n"
		}
		body := `{"logs":[`
		var want []map[string]any
		for i := range 1 + r.IntN(6) {
			one := randomEntry(r)
			body += strings.Repeat(",", min(i, 1)) + one
			if entry := naively(rules, decodedEntry(t, []byte(one))); entry != nil {
				want = append(want, entry)
			}
		}
		batch, err := NewParser(DefaultLimits()).Parse([]byte(body + `]}`))
		if err != nil || batch.Rejected > 0 {
			t.Fatalf("%s: %v, %v", body, err, batch.Faults)
		}
		if _, done := ruler.Apply(rulesOf(t, text), batch, "prod", never); !done {
			t.Fatal("it is late")
		}
		var got []map[string]any
		start, size := 0, int64(0)
		for _, line := range batch.Accepted {
			got, size = append(got, decodedEntry(t, batch.Lines[start:line.End-1])), size+int64(line.End-1-start)
			start = line.End
		}
		if start != len(batch.Lines) || batch.Bytes != size && !strings.Contains(text, "after") {
			t.Fatalf("seed %d: %d bytes charged, %d kept of %d", seed, batch.Bytes, size, len(batch.Lines))
		}
		checkParts(t, batch, 1+r.IntN(400))
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d:\n%s%s\ngot  %v\nwant %v", seed, text, body, got, want)
		}
	}
}

// checkParts checks that each part is charged something, and all together what
// the batch is.
func checkParts(t *testing.T, batch *Batch, maxBytes int) {
	t.Helper()
	sum := int64(0)
	for _, part := range batch.Parts(nil, maxBytes) {
		if part.Bytes <= 0 {
			t.Fatalf("%d bytes are charged for %s", part.Bytes, part.Lines)
		}
		sum += part.Bytes
	}
	if len(batch.Accepted) > 0 && sum != batch.Bytes {
		t.Fatalf("parts are charged %d bytes, the batch %d", sum, batch.Bytes)
	}
}

// A level that grows after the charge takes nothing off the charge of a small last part.
func TestPartsAreChargedForTheirEntries(t *testing.T) {
	entry := func(size int) string {
		const head = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"`
		return head + strings.Repeat("x", size-len(head)-2) + `"}`
	}
	body := `{"logs":[` + strings.Repeat(entry(922)+",", 999) + entry(66) + `]}`
	batch, err := NewParser(DefaultLimits()).Parse([]byte(body))
	if err != nil || batch.Rejected > 0 {
		t.Fatal(err, batch.Faults)
	}
	var ruler Ruler
	if _, done := ruler.Apply(rulesOf(t, "set level error if level:info after the charge"), batch, "", never); !done {
		t.Fatal("it is late")
	}
	if parts := batch.Parts(nil, 999*924); len(parts) != 2 || parts[0].Bytes != 999*922 || parts[1].Bytes != 66 {
		t.Errorf("%d parts, charged %d and %d", len(parts), parts[0].Bytes, parts[1].Bytes)
	}
}

func never() bool { return false }

func naively(rules []int, entry map[string]any) map[string]any {
	for _, after := range []bool{false, true} {
		for _, n := range rules {
			rule := naiveRules[n]
			if strings.HasSuffix(rule.text, " after the charge") == after && entry != nil && rule.matches(entry) {
				entry = rule.change(entry)
			}
		}
	}
	return entry
}

// Whatever an entry has, what redactions leave of it is an entry, and no longer
// than before.
func FuzzRedact(f *testing.F) {
	f.Add("a@example.com", `{"password":"x","n":4111111111111111}`)
	f.Add(`{"a":"\u0061@b.co"}`, `{"Authorization":["Bearer eyJhbGciOi.eyJzdWIiOiIx.c2ln",10.0,"10.0.0.1:80"]}`)
	set, err := ParseRules("redact " + strings.Join(RedactionPatterns(), ", ") + ", /[0-9]{3}-[0-9]+/")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, message, metadata string) {
		quoted, _ := json.Marshal(message)
		body := fmt.Sprintf(`{"logs":[{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":%s,"metadata":%s}]}`, quoted, metadata)
		batch, err := NewParser(DefaultLimits()).Parse([]byte(body))
		if err != nil || batch.Rejected > 0 {
			return
		}
		before := len(batch.Lines)
		var ruler Ruler
		ruler.Apply(set, batch, "", never)
		once := `{"logs":[` + string(batch.Lines) + `]}`
		if len(batch.Lines) > before {
			t.Fatalf("%s has grown to %s", body, once)
		}
		again, err := NewParser(DefaultLimits()).Parse([]byte(once))
		if err != nil || again.Rejected > 0 {
			t.Fatalf("%s became %s: %v %v", body, once, err, again.Faults)
		}
	})
}

// Entries that no rule matches cost no memory.
func TestRulesAllocateNothing(t *testing.T) {
	set := rulesOf(t, "drop environment:dev* level:debug\nsample 1% by trace_id if level:warn\nredact email, ip, card-number, token, access-key, password\n"+
		"redact /ORD-[0-9]+/ in message\nset level error if \"disk full\" service:shop")
	entry := []byte(entryWith("payment of order 4711 took 12.5 ms", `"trace_id":"4bf92f3577b34da6","service":"pay","ms":12.5,"user":{"id":42,"tags":["a","b"]}`))
	ruler := Ruler{seeker: seeker{late: never}}
	ruler.judge(set, entry, "prod")
	if n := testing.AllocsPerRun(100, func() { ruler.judge(set, entry, "prod") }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRules(b *testing.B) {
	for name, rules := range map[string]string{
		"drop":   "drop level:debug environment:dev",
		"redact": "redact email, ip, card-number, token, access-key, password",
		"own":    "redact /ORD-[0-9]+/",
		"five":   "drop level:debug\nsample 10% by trace_id if level:warn\nredact email, card-number\nset level error if \"disk full\"\ndrop path:/health*",
	} {
		b.Run(name, func(b *testing.B) {
			set := rulesOf(b, rules)
			entry := []byte(entryWith("payment of order 4711 took 12.5 ms", `"trace_id":"4bf92f3577b34da6","service":"pay","ms":12.5,"user":{"id":42,"tags":["a","b"]}`))
			b.SetBytes(int64(len(entry)))
			ruler := Ruler{seeker: seeker{late: never}}
			for b.Loop() {
				ruler.judge(set, entry, "prod")
			}
		})
	}
}
