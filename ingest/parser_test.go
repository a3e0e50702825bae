package ingest_test

import (
	"errors"
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
		{"zero offset", stamp("2026-01-31T12:00:00+00:00"), []fault{{"/timestamp", ingest.CodeInvalidTimestamp}}},
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

// A kept entry can be read back: time, level, decoded message and environment.
func TestReadEntry(t *testing.T) {
	parser := ingest.NewParser(ingest.DefaultLimits())
	entry, err := parser.ReadEntry([]byte(`{"timestamp":"0001-01-01T00:00:00.000000001Z","level":"fatal","message":"a\n\u00e9\ud83d\ude00","environment":"st\u0061ging","error":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	if entry.Time.String() != "0001-01-01T00:00:00.000000001Z" || entry.Level != ingest.SeverityFatal ||
		string(entry.Message) != "a\né😀" || string(entry.Environment) != "staging" || !entry.HasError {
		t.Errorf("got %+v", entry)
	}
	for _, bad := range []string{"", "{}", goodEntry + "\n", " " + goodEntry, goodEntry + "}", goodEntry + goodEntry, `{"a": 1}`} {
		if _, err := parser.ReadEntry([]byte(bad)); err == nil {
			t.Errorf("%q is read", bad)
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
