package ingest_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
)

const goodEntry = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"m"}`

func parse(t *testing.T, body string) (*ingest.Batch, *ingest.BodyError) {
	t.Helper()
	batch, err := ingest.NewParser(ingest.DefaultLimits()).Parse([]byte(body))
	var refusal *ingest.BodyError
	if err != nil && !errors.As(err, &refusal) {
		t.Fatalf("Parse returned %T, want *BodyError", err)
	}
	return batch, refusal
}

// A body that is not JSON, or not a batch, is refused with code and place.
func TestParseRefusesBody(t *testing.T) {
	deep := func(n int) string {
		return `{"logs":[` + strings.TrimSuffix(goodEntry, "}") + `,"x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}]}`
	}
	for _, c := range []struct {
		name, body string
		code       ingest.Code
		pointer    string
	}{
		{"nothing", ``, ingest.CodeInvalidJSON, ""},
		{"white space only", ` `, ingest.CodeInvalidJSON, ""},
		{"byte order mark", "\ufeff{}", ingest.CodeInvalidJSON, ""},
		{"array", `[]`, ingest.CodeInvalidType, ""},
		{"string", `"x"`, ingest.CodeInvalidType, ""},
		{"broken scalar", `nul`, ingest.CodeInvalidJSON, ""},
		{"scalar and more", `1 2`, ingest.CodeInvalidJSON, ""},
		{"unfinished object", `{`, ingest.CodeInvalidJSON, ""},
		{"no logs", `{}`, ingest.CodeMissingField, "/logs"},
		{"null logs", `{"logs":null}`, ingest.CodeMissingField, "/logs"},
		{"logs of another type", `{"logs":{}}`, ingest.CodeInvalidType, "/logs"},
		{"empty logs", `{"logs":[ ]}`, ingest.CodeEmptyBatch, "/logs"},
		{"too many entries", `{"logs":[` + strings.Repeat("1,", 1000) + `1]}`, ingest.CodeBatchTooLarge, "/logs"},
		{"logs twice", `{"logs":[` + goodEntry + `],"logs":[]}`, ingest.CodeDuplicateField, "/logs"},
		{"logs twice, once escaped", `{"logs":[` + goodEntry + `],"l\u006fgs":[]}`, ingest.CodeDuplicateField, "/logs"},
		{"unknown name twice", `{"a/b":1,"logs":[` + goodEntry + `],"a\/b":2}`, ingest.CodeDuplicateField, "/a~1b"},
		{"api_key twice", `{"api_key":"a","api_key":"b","logs":[]}`, ingest.CodeDuplicateField, "/api_key"},
		{"trailing data", `{"logs":[` + goodEntry + `]} x`, ingest.CodeInvalidJSON, ""},
		{"two bodies", `{"logs":[` + goodEntry + `]}{}`, ingest.CodeInvalidJSON, ""},
		{"trailing comma in logs", `{"logs":[` + goodEntry + `,]}`, ingest.CodeInvalidJSON, "/logs/1"},
		{"trailing comma in body", `{"logs":[` + goodEntry + `],}`, ingest.CodeInvalidJSON, ""},
		{"NUL outside of strings", "{\"logs\":[" + goodEntry + "\x00]}", ingest.CodeInvalidJSON, "/logs/0"},
		{"NUL at the end", "{\"logs\":[" + goodEntry + "]}\x00", ingest.CodeInvalidJSON, ""},
		{"control character in a string", "{\"logs\":[{\"a\":\"\x1f\"}]}", ingest.CodeInvalidJSON, "/logs/0"},
		{"unknown escape", `{"logs":[{"a":"\x"}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"short escape", `{"logs":[{"a":"\u12"}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"high surrogate alone", `{"logs":[{"a":"\ud800"}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"low surrogate alone", `{"logs":[{"a":"\udc00"}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"two high surrogates", `{"logs":[{"a":"\ud800\ud800"}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"invalid UTF-8", "{\"logs\":[{\"a\":\"\xff\"}]}", ingest.CodeInvalidJSON, "/logs/0"},
		{"overlong UTF-8", "{\"logs\":[{\"a\":\"\xc0\xaf\"}]}", ingest.CodeInvalidJSON, "/logs/0"},
		{"surrogate in UTF-8", "{\"logs\":[{\"a\":\"\xed\xa0\x80\"}]}", ingest.CodeInvalidJSON, "/logs/0"},
		{"leading zero", `{"logs":[{"a":01}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"bare point", `{"logs":[{"a":1.}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"plus", `{"logs":[{"a":+1}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"empty exponent", `{"logs":[{"a":1e}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"NaN", `{"logs":[{"a":NaN}]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"comment", `{"logs":[/**/]}`, ingest.CodeInvalidJSON, "/logs/0"},
		{"name without quotes", `{logs:[]}`, ingest.CodeInvalidJSON, ""},
		{"129 levels", deep(126), ingest.CodeInvalidJSON, "/logs/0"},
		{"a million levels", strings.Repeat("[", 1e6), ingest.CodeInvalidJSON, ""},
		{"two reasons", `{"logs":[],"logs":null,"a":1,"a":2}`, ingest.CodeEmptyBatch, "/logs"},
		{"a reason before broken JSON", `{"logs":[],"a":oops}`, ingest.CodeEmptyBatch, "/logs"},
		{"many unknown members", manyMembers(70_000), ingest.CodeTooManyFields, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, refusal := parse(t, c.body)
			if refusal == nil {
				t.Fatal("accepted")
			}
			if refusal.Code != c.code || refusal.Pointer != c.pointer {
				t.Errorf("got %s at %q (%s), want %s at %q", refusal.Code, refusal.Pointer, refusal.Detail, c.code, c.pointer)
			}
		})
	}
	if _, refusal := parse(t, deep(125)); refusal != nil {
		t.Errorf("128 levels are refused: %v", refusal)
	}
}

func manyMembers(n int) string {
	var b strings.Builder
	b.WriteString(`{`)
	for i := range n {
		b.WriteString(`"` + strings.Repeat("x", i%7) + string(rune(0x4e00+i%20000)) + string(rune('a'+i/20000)) + `":0,`)
	}
	return b.String() + `"logs":[` + goodEntry + `]}`
}

// The error for invalid JSON has the byte at which it breaks.
func TestParseTellsOffset(t *testing.T) {
	for body, offset := range map[string]int{
		`{"logs":[1}`:               10,
		`{"logs":[{"a":"b`:          16,
		`{"logs":[{"a":"12345678\x`: 23,
		"{\"logs\":[{ \"a\" :\xff":  16,
	} {
		if _, refusal := parse(t, body); refusal == nil || refusal.Offset != offset {
			t.Errorf("%s: got %v, want offset %d", body, refusal, offset)
		}
	}
}

// An invalid entry is rejected alone, with index, pointer and code; its
// neighbour is kept.
func TestParseRejectsEntry(t *testing.T) {
	with := func(member string) string { return strings.TrimSuffix(goodEntry, "}") + "," + member + "}" }
	stamp := func(at string) string {
		return `{"timestamp":"` + at + `","level":"info","message":"m"}`
	}
	type fault struct {
		pointer string
		code    ingest.Code
	}
	for _, c := range []struct {
		name, entry string
		want        []fault
	}{
		{"no object", `5`, []fault{{"", ingest.CodeInvalidType}}},
		{"null", `null`, []fault{{"", ingest.CodeInvalidType}}},
		{"nothing given", `{}`, []fault{{"/timestamp", ingest.CodeMissingField}, {"/level", ingest.CodeMissingField}, {"/message", ingest.CodeMissingField}}},
		{"required null", `{"timestamp":null,"level":"info","message":null}`, []fault{{"/timestamp", ingest.CodeMissingField}, {"/message", ingest.CodeMissingField}}},
		{"upper-case level", `{"timestamp":"2026-01-31T12:00:00Z","level":"INFO","message":""}`, []fault{{"/level", ingest.CodeInvalidLevel}}},
		{"level of another type", `{"timestamp":"2026-01-31T12:00:00Z","level":3,"message":""}`, []fault{{"/level", ingest.CodeInvalidType}}},
		{"message of another type", `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":{}}`, []fault{{"/message", ingest.CodeInvalidType}}},
		{"timestamp a number", `{"timestamp":1700000000,"level":"info","message":""}`, []fault{{"/timestamp", ingest.CodeInvalidType}}},
		{"offset", stamp("2026-01-31T12:00:00+02:00"), []fault{{"/timestamp", ingest.CodeInvalidTimestamp}}},
		{"offset without minutes", stamp("2026-01-31T12:00:00+00"), []fault{{"/timestamp", ingest.CodeInvalidTimestamp}}},
		{"no day", stamp("2026-02-30T12:00:00Z"), []fault{{"/timestamp", ingest.CodeInvalidTimestamp}}},
		{"two faults", `{"timestamp":"x","level":"x","message":""}`, []fault{{"/timestamp", ingest.CodeInvalidTimestamp}, {"/level", ingest.CodeInvalidLevel}}},
		{"environment", with(`"environment":1`), []fault{{"/environment", ingest.CodeInvalidType}}},
		{"project_id", with(`"project_id":[]`), []fault{{"/project_id", ingest.CodeInvalidType}}},
		{"metadata", with(`"metadata":[]`), []fault{{"/metadata", ingest.CodeInvalidType}}},
		{"error", with(`"error":"boom"`), []fault{{"/error", ingest.CodeInvalidType}}},
		{"error type", with(`"error":{"type":1}`), []fault{{"/error/type", ingest.CodeInvalidType}}},
		{"error message", with(`"error":{"message":false}`), []fault{{"/error/message", ingest.CodeInvalidType}}},
		{"stack trace", with(`"error":{"stack_trace":"at"}`), []fault{{"/error/stack_trace", ingest.CodeInvalidType}}},
		{"stack frame", with(`"error":{"stack_trace":["a",null]}`), []fault{{"/error/stack_trace/1", ingest.CodeInvalidType}}},
		{"error context", with(`"error":{"context":[]}`), []fault{{"/error/context", ingest.CodeInvalidType}}},
		{"known name twice", with(`"level":"info"`), []fault{{"/level", ingest.CodeDuplicateField}}},
		{"known name twice, escaped", with(`"\u006cevel":"info"`), []fault{{"/level", ingest.CodeDuplicateField}}},
		{"null twice", with(`"metadata":null,"metadata":null`), []fault{{"/metadata", ingest.CodeDuplicateField}}},
		{"unknown name twice", with(`"a~b":1, "c":2, "a~b":3`), []fault{{"/a~0b", ingest.CodeDuplicateField}}},
		{"name twice in error", with(`"error":{"type":"a","type":"b"}`), []fault{{"/error/type", ingest.CodeDuplicateField}}},
		{"unknown name twice in error", with(`"error":{"x":1,"y":2,"x":3}`), []fault{{"/error/x", ingest.CodeDuplicateField}}},
		{"long message", strings.Replace(goodEntry, `"m"`, `"`+strings.Repeat("x", 10241)+`"`, 1), []fault{{"/message", ingest.CodeMessageTooLarge}}},
		{"long message in runes", strings.Replace(goodEntry, `"m"`, `"`+strings.Repeat("é", 5121)+`"`, 1), []fault{{"/message", ingest.CodeMessageTooLarge}}},
		{"large metadata", with(`"metadata":{"a":"` + strings.Repeat("x", 100*1024-7) + `"}`), []fault{{"/metadata", ingest.CodeMetadataTooLarge}}},
		{"large entry", with(`"x":"` + strings.Repeat("x", 512*1024-len(goodEntry)-6) + `"`), []fault{{"", ingest.CodeEntryTooLarge}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			batch, refusal := parse(t, `{"logs":[`+goodEntry+`, `+c.entry+` ,`+goodEntry+`]}`)
			if refusal != nil {
				t.Fatal(refusal)
			}
			if got := string(batch.Lines); got != goodEntry+"\n"+goodEntry+"\n" || batch.Rejected != 1 || batch.Entries != 3 {
				t.Errorf("kept %d of %d: %.200s", len(batch.Accepted), batch.Entries, got)
			}
			var got []fault
			for _, f := range batch.Faults {
				got = append(got, fault{strings.TrimPrefix(f.Pointer, "/logs/1"), f.Code})
				if f.Index != 1 || f.Detail == "" || f.Fix == "" {
					t.Errorf("fault %+v lacks something", f)
				}
			}
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("got %v, want %v", got[i], c.want[i])
				}
			}
		})
	}
}

// A valid entry is kept as sent, without white space outside strings;
// limits are inclusive.
func TestParseKeepsEntry(t *testing.T) {
	with := func(member string) string { return strings.TrimSuffix(goodEntry, "}") + "," + member + "}" }
	for _, c := range []struct{ name, entry, want string }{
		{"as it is", goodEntry, goodEntry},
		{"white space", "{ \"timestamp\" : \"2026-01-31T12:00:00Z\" ,\n\t\"level\":\"info\"\r\n, \"message\":\"a b\\n\" , \"metadata\" : { \"x\" : [ 1 , 2 ] } }",
			`{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"a b\n","metadata":{"x":[1,2]}}`},
		{"numbers keep their spelling", with(`"metadata":{"a":1e400,"b":-0.0,"c":1E+05,"d":123456789012345678901234567890}`), ""},
		{"optional nulls", with(`"environment":null,"metadata":null,"error":null,"project_id":null`), ""},
		{"nulls in error", with(`"error":{"type":null,"message":null,"stack_trace":null,"context":null}`), ""},
		{"unknown members", with(`"trace_id":"x","span":{"a":[{}]}`), ""},
		{"name twice in metadata", with(`"metadata":{"a":1,"a":2}`), ""},
		{"name twice in context", with(`"error":{"context":{"a":1,"a":2}}`), ""},
		{"name of the entry in the error", with(`"error":{"level":1,"timestamp":2},"type":3`), ""},
		{"NUL escaped", strings.Replace(goodEntry, `"m"`, `"\u0000"`, 1), ""},
		{"surrogate pair", strings.Replace(goodEntry, `"m"`, `"\ud83d\ude00"`, 1), ""},
		{"escaped names and values", `{"\u0074imestamp":"2026-01-31T12:00:00\u005a","level":"\u0069nfo","message":""}`, ""},
		{"message of 10 KB", strings.Replace(goodEntry, `"m"`, `"`+strings.Repeat("x", 10240)+`"`, 1), ""},
		{"message of 10 KB, escaped", strings.Replace(goodEntry, `"m"`, `"`+strings.Repeat(`\u0041`, 10240)+`"`, 1), ""},
		{"metadata of 100 KB", with(`"metadata":{"a":"` + strings.Repeat("x", 100*1024-8) + `"}`), ""},
		{"entry of 512 KB", with(`"x":"` + strings.Repeat("x", 512*1024-len(goodEntry)-7) + `"`), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.want == "" {
				c.want = c.entry
			}
			batch, refusal := parse(t, ` { "x" : [ ] , "logs" : [ `+c.entry+` , `+c.entry+` ] } `)
			if refusal != nil || batch.Rejected > 0 {
				t.Fatal(refusal, batch.Faults)
			}
			if got := string(batch.Lines); got != c.want+"\n"+c.want+"\n" {
				t.Errorf("kept %.300q, want %.300q", got, c.want)
			}
			if batch.Bytes != int64(2*len(c.want)) {
				t.Errorf("charges %d bytes, want %d", batch.Bytes, 2*len(c.want))
			}
		})
	}
}

// White space never counts towards a limit.
func TestParseLimitsCompactSize(t *testing.T) {
	spread := strings.Repeat("1 , ", 50*1024-5) // 100 KB and more with white space, less without
	batch, refusal := parse(t, `{"logs":[`+strings.TrimSuffix(goodEntry, "}")+`,"metadata":{"a":[`+spread+`1]}}]}`)
	if refusal != nil || batch.Rejected != 0 {
		t.Errorf("refused: %v %v", refusal, batch.Faults)
	}
}

// At most 100 faults are listed, and that there were more.
func TestParseCapsFaults(t *testing.T) {
	batch, _ := parse(t, `{"logs":[`+strings.Repeat("{},", 999)+goodEntry+`]}`)
	if len(batch.Faults) != 100 || !batch.FaultsTruncated || batch.Rejected != 999 || len(batch.Accepted) != 1 {
		t.Errorf("%d faults, truncated %t, %d rejected", len(batch.Faults), batch.FaultsTruncated, batch.Rejected)
	}
}

// The deprecated key is found anywhere in the body, even in a refused
// one, and is never kept.
func TestParseFindsAPIKey(t *testing.T) {
	for _, c := range []struct {
		body, key string
		has       bool
	}{
		{`{"api_key":"weir_a\u0062","logs":[` + goodEntry + `]}`, "weir_ab", true},
		{`{"logs":[ ` + goodEntry + ` ], "api_key" : "weir_ab"}`, "weir_ab", true},
		{`{"api_key":"weir_ab","logs":oops`, "weir_ab", true},
		{`{"api_key":5,"logs":[` + goodEntry + `]}`, "", true},
		{`{"api_key":null,"logs":[` + goodEntry + `]}`, "", false},
		{`{"logs":[` + goodEntry + `]}`, "", false},
		{`{"logs":[ ],"api_key":"weir_ab"}`, "weir_ab", true},
		{`{"logs":null,"api_key":"weir_ab"}`, "weir_ab", true},
		{`{"logs":{"api_key":"x"},"api_key":"weir_ab"}`, "weir_ab", true},
		{`{"logs":[` + strings.Repeat("{}, ", 1001) + `{"api_key":"x"}], "x":1, "api_key":"weir_ab"}`, "weir_ab", true},
		{`{"logs":[],"logs":[` + goodEntry + `],"api_key":"weir_ab"}`, "weir_ab", true},
		{`{"api_key":"weir_ab","api_key":"weir_cd","logs":[]}`, "weir_ab", true},
		{strings.TrimSuffix(manyMembers(70_000), "}") + `,"api_key":"weir_ab"}`, "weir_ab", true},
		{`{"logs":[],"api_key":"weir_ab`, "", false},
	} {
		batch, _ := parse(t, c.body)
		if batch.APIKey != c.key || batch.HasAPIKey != c.has || strings.Contains(string(batch.Lines), "weir_ab") {
			t.Errorf("%.100s: key %q, has %t", c.body, batch.APIKey, batch.HasAPIKey)
		}
	}
}

// Parts cover the batch in order, within the limit, and add up to the charge.
func TestBatchParts(t *testing.T) {
	batch, refusal := parse(t, string(sampleBody(1000, ", ")))
	if refusal != nil {
		t.Fatal(refusal)
	}
	var lines strings.Builder
	var bytes int64
	next, failed := 0, 0
	for _, part := range batch.Parts(nil, 20_000) {
		if part.First != next || len(part.Lines) > 20_000 || strings.Count(string(part.Lines), "\n") != part.Count {
			t.Errorf("part from %d: %d entries, %d bytes", part.First, part.Count, len(part.Lines))
		}
		next += part.Count
		bytes += part.Bytes
		failed += part.Errors
		lines.Write(part.Lines)
	}
	if next != 1000 || bytes != batch.Bytes || lines.String() != string(batch.Lines) || failed != 100 {
		t.Errorf("%d entries, %d bytes, %d errors", next, bytes, failed)
	}
	if parts := batch.Parts(nil, 1); len(parts) != 1000 {
		t.Errorf("%d parts of one entry", len(parts))
	}
}

// The parser and the oracle agree on tens of thousands of bodies of
// legal, nearly legal and broken pieces, with and without white space.
// The seed is fixed.
func TestParseAgreesWithOracle(t *testing.T) {
	random := rand.New(rand.NewPCG(20260314, 1))
	parser := ingest.NewParser(smallLimits)
	for range 40_000 {
		body := []byte(randomBody(random))
		if random.IntN(4) == 0 {
			body = damage(random, body)
		}
		checkAgainstOracle(t, parser, body, smallLimits)
	}
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

func blank(random *rand.Rand) string { return pick(random, "", "", "", "", " ", "\n\t", "\r\n  ") }

func randomBody(random *rand.Rand) string {
	var entries []string
	for range random.IntN(7) {
		entries = append(entries, blank(random)+randomEntry(random)+blank(random))
	}
	logs := `"logs":` + blank(random) + "[" + strings.Join(entries, ",") + "]"
	members := []string{logs}
	for range random.IntN(3) {
		members = append(members, randomName(random)+":"+randomValue(random, 0))
	}
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return blank(random) + "{" + strings.Join(members, blank(random)+","+blank(random)) + "}" + blank(random)
}

func randomEntry(random *rand.Rand) string {
	if random.IntN(20) == 0 {
		return randomValue(random, 0)
	}
	members := []string{
		`"timestamp":"` + pick(random, "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.25Z", "2024-02-29T00:00:00Z", "2026-02-29T00:00:00Z") + `"`,
		`"level":` + pick(random, `"info"`, `"warn"`, `"fatal"`, `"\u0069nfo"`, `"Info"`, `null`),
		`"message":` + pick(random, `"m"`, `""`, `"twelve bytes"`, `"thirteen byte"`, `"\u0041\u0041\u0041"`, `"ééééééé"`, `"é\n"`),
	}
	for range random.IntN(4) {
		members = append(members, randomMember(random))
	}
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{" + strings.Join(members, blank(random)+","+blank(random)) + blank(random) + "}"
}

func randomMember(random *rand.Rand) string {
	name := pick(random, `"metadata"`, `"error"`, `"environment"`, `"project_id"`, `"level"`, randomName(random), randomName(random))
	value := randomValue(random, 0)
	if name == `"error"` {
		value = pick(random, `{"type":"T"}`, `{"stack_trace":["a", "b"]}`, `{"stack_trace":[1]}`, `{"context":{"a":1,"a":2},"x":1}`, `{"x":1,"y":2,"x":3}`, value)
	}
	return name + blank(random) + ":" + blank(random) + value
}

func randomName(random *rand.Rand) string {
	return pick(random, `"a"`, `"b"`, `"\u0061"`, `"a\/b"`, `"a/b"`, `"é"`, `"\u00e9"`, `""`, `"long name that takes some space"`)
}

func randomValue(random *rand.Rand, depth int) string {
	if depth > 3 || random.IntN(3) > 0 {
		return pick(random, `1`, `-0.5e+3`, `"x"`, `"\ud83d\ude00"`, `true`, `false`, `null`, `"\\\""`, `12345678901234567890`, `"日本語テキスト"`, `{}`, `[]`)
	}
	var parts []string
	array := random.IntN(2) == 0
	for range random.IntN(4) {
		part := blank(random) + randomValue(random, depth+1) + blank(random)
		if !array {
			part = blank(random) + randomName(random) + blank(random) + ":" + part
		}
		parts = append(parts, part)
	}
	if array {
		return "[" + strings.Join(parts, ",") + "]"
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// damage changes, removes, adds or moves a few bytes.
func damage(random *rand.Rand, body []byte) []byte {
	for range 1 + random.IntN(3) {
		at := random.IntN(len(body))
		switch random.IntN(4) {
		case 0:
			body[at] = "{}[]\",:\\ue0123456789.-+EtTfn \x00\x1f\xff\xc3\xa9\xed\xa0"[random.IntN(36)]
		case 1:
			body = append(body[:at:at], body[at+1:]...)
		case 2:
			body = append(body[:at:at], append([]byte{body[random.IntN(len(body))]}, body[at:]...)...)
		default:
			body = body[:at+1]
		}
		if len(body) == 0 {
			return body
		}
	}
	return body
}

// sampleEntry is a typical entry of about 480 bytes, every tenth with an error.
func sampleEntry(random *rand.Rand, index int) string {
	level := [...]string{"debug", "info", "warn", "error"}[random.IntN(4)]
	text := fmt.Sprintf(`{"timestamp":"2026-03-14T09:26:%02d.%03dZ","level":%q,`+
		`"message":"request %d to /v1/orders/%d finished with status %d after retrying the upstream %d times","environment":"production",`+
		`"metadata":{"request_id":"%016x%016x","user_id":%d,"duration_ms":%.3f,"region":"eu-central-1","cached":%t,"status":%d,"route":"/v1/orders/{id}","tags":["a","b"]}`,
		random.IntN(60), random.IntN(1000), level, index, random.IntN(1e6), 200+random.IntN(300), random.IntN(4),
		random.Uint64(), random.Uint64(), random.IntN(1e7), random.Float64()*1000, random.IntN(2) == 0, 200+random.IntN(300))
	if index%10 == 0 {
		text += `,"error":{"type":"TimeoutError","message":"deadline exceeded","stack_trace":["at handle (/app/orders.js:10:5)",` +
			`"at next (/app/router.js:120:13)","at run (/app/server.js:44:9)","at main (/app/index.js:3:1)"],"context":{"attempt":3}}`
	}
	return text + "}"
}

func sampleBody(n int, separator string) []byte {
	random := rand.New(rand.NewPCG(1, 2))
	entries := make([]string, n)
	for i := range entries {
		entries[i] = sampleEntry(random, i)
	}
	return []byte(`{"logs":[` + strings.Join(entries, separator) + `]}`)
}

// spacious is body with a space behind each comma and colon outside
// of strings, as many encoders write it.
func spacious(body []byte) []byte {
	var out []byte
	inside, escaped := false, false
	for _, c := range body {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}
