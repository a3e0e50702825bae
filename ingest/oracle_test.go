package ingest_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/weirlog/weir/ingest"
)

// The oracle validates a body slowly and plainly, on top of an
// independent, strict JSON reader.

type oracleMember struct {
	name  string
	value jsontext.Value
}

func oracleDepth(body []byte) (int, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(body), jsontext.AllowDuplicateNames(true))
	deepest, values := 0, 0
	for {
		if _, err := decoder.ReadToken(); errors.Is(err, io.EOF) {
			if values != 1 {
				return 0, errors.New("not one value")
			}
			return deepest, nil
		} else if err != nil {
			return 0, err
		}
		if deepest = max(deepest, decoder.StackDepth()); decoder.StackDepth() == 0 {
			values++
		}
	}
}

func oracleMembers(object jsontext.Value) []oracleMember {
	decoder := jsontext.NewDecoder(bytes.NewReader(object), jsontext.AllowDuplicateNames(true))
	_, _ = decoder.ReadToken()
	var members []oracleMember
	for decoder.PeekKind() != '}' {
		name, _ := decoder.ReadToken()
		text := name.String()
		value, _ := decoder.ReadValue()
		members = append(members, oracleMember{text, value.Clone()})
	}
	return members
}

func oracleElements(array jsontext.Value) []jsontext.Value {
	decoder := jsontext.NewDecoder(bytes.NewReader(array), jsontext.AllowDuplicateNames(true))
	_, _ = decoder.ReadToken()
	var elements []jsontext.Value
	for decoder.PeekKind() != ']' {
		value, _ := decoder.ReadValue()
		elements = append(elements, value.Clone())
	}
	return elements
}

func oracleTwice(members []oracleMember) bool {
	seen := map[string]bool{}
	for _, m := range members {
		if seen[m.name] {
			return true
		}
		seen[m.name] = true
	}
	return false
}

func oracleCompact(value jsontext.Value) string {
	value = value.Clone()
	_ = value.Compact(jsontext.AllowDuplicateNames(true))
	return string(value)
}

func oracleText(value jsontext.Value) string {
	text, _ := jsontext.AppendUnquote(nil, []byte(value))
	return string(text)
}

func oracleError(value jsontext.Value) bool {
	if value.Kind() != '{' {
		return false
	}
	members := oracleMembers(value)
	for _, m := range members {
		kind := m.value.Kind()
		switch {
		case kind == 'n':
		case m.name == "type" || m.name == "message":
			if kind != '"' {
				return false
			}
		case m.name == "context":
			if kind != '{' {
				return false
			}
		case m.name == "stack_trace":
			if kind != '[' || slices.ContainsFunc(oracleElements(m.value), func(v jsontext.Value) bool { return v.Kind() != '"' }) {
				return false
			}
		}
	}
	return !oracleTwice(members)
}

func oracleTime(text string) bool {
	if local, ok := strings.CutSuffix(text, "+00:00"); ok {
		text = local + "Z"
	}
	_, err := time.Parse("2006-01-02T15:04:05.999999999Z", text)
	head, tail, found := strings.Cut(strings.TrimSuffix(text, "Z"), ".")
	return err == nil && len(head) == 19 && !strings.Contains(text, ",") && (!found || len(tail) >= 1 && len(tail) <= 9)
}

func oracleEntry(value jsontext.Value, limits ingest.Limits) bool {
	if value.Kind() != '{' || len(oracleCompact(value)) > limits.Entry {
		return false
	}
	members := oracleMembers(value)
	given := 0
	for _, m := range members {
		kind := m.value.Kind()
		required := m.name == "timestamp" || m.name == "level" || m.name == "message"
		if kind == 'n' {
			continue
		}
		if required {
			given++
		}
		switch m.name {
		case "timestamp", "level", "message", "environment", "project_id":
			if kind != '"' {
				return false
			}
		case "metadata":
			if kind != '{' || len(oracleCompact(m.value)) > limits.Metadata {
				return false
			}
		case "error":
			if !oracleError(m.value) {
				return false
			}
		}
		switch {
		case m.name == "timestamp" && !oracleTime(oracleText(m.value)),
			m.name == "level" && !slices.Contains([]string{"debug", "info", "warn", "error", "fatal"}, oracleText(m.value)),
			m.name == "message" && len(oracleText(m.value)) > limits.Message:
			return false
		}
	}
	return given == 3 && !oracleTwice(members)
}

// oracleBody returns the lines to keep and how many entries
// there are, or false for a body to refuse.
func oracleBody(body []byte, limits ingest.Limits) (lines string, entries int, ok bool) {
	depth, err := oracleDepth(body)
	if err != nil || depth > ingest.MaxDepth || jsontext.Value(body).Kind() != '{' {
		return "", 0, false
	}
	members := oracleMembers(body)
	at := slices.IndexFunc(members, func(m oracleMember) bool { return m.name == "logs" })
	if oracleTwice(members) || at < 0 || members[at].value.Kind() != '[' {
		return "", 0, false
	}
	elements := oracleElements(members[at].value)
	for _, element := range elements {
		if oracleEntry(element, limits) {
			lines += oracleCompact(element) + "\n"
		}
	}
	return lines, len(elements), len(elements) > 0 && len(elements) <= limits.Entries
}

// checkAgainstOracle fails the test if the parser and the oracle differ about body.
func checkAgainstOracle(t *testing.T, parser *ingest.Parser, body []byte, limits ingest.Limits) {
	t.Helper()
	lines, entries, ok := oracleBody(body, limits)
	batch, err := parser.Parse(bytes.Clone(body))
	if ok != (err == nil) {
		t.Fatalf("%q: the oracle says %t, the parser %v", body, ok, err)
	}
	if !ok {
		return
	}
	if string(batch.Lines) != lines || batch.Entries != entries || batch.Rejected != entries-len(batch.Accepted) {
		t.Fatalf("%q: kept %q of %d, want %q of %d; faults %v", body, batch.Lines, batch.Entries, lines, entries, batch.Faults)
	}
	if (batch.Rejected > 0) != (len(batch.Faults) > 0) {
		t.Fatalf("%q: %d rejected, %d faults", body, batch.Rejected, len(batch.Faults))
	}
}

var smallLimits = ingest.Limits{Entries: 5, Message: 12, Metadata: 30, Entry: 160, Faults: 10}

var seeds = []string{
	`{"logs":[` + goodEntry + `]}`,
	` { "api_key" : "k" , "logs" : [ ` + goodEntry + ` , {} ] } `,
	`{"logs":[{"timestamp":"2026-01-31T12:00:00.123Z","level":"w\u0061rn","message":"é\ud83d\ude00","metadata":{"a": [1.5e-3 , true]},"error":{"type":"T","stack_trace":["a"],"context":{}}}]}`,
	`{"logs":[{"timestamp":"2026-02-30T12:00:00Z","level":"x","message":1,"level":null}, 5, null, "x", []]}`,
	`{"a":{"b":[[[]]],"b":1},"logs":[{"x":1,"x":2}],"c":-0.0E+7}`,
}

// FuzzParse compares the parser with the oracle on whatever the fuzzer
// finds, with limits small enough to be met.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		checkAgainstOracle(t, ingest.NewParser(smallLimits), body, smallLimits)
	})
}
