package ingest_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/weirlog/weir/ingest"
)

func normalize(body string) (string, ingest.Changes, error) {
	var to bytes.Buffer
	changes, err := new(ingest.Normalizer).Normalize([]byte(body), false, &to)
	return to.String(), changes, err
}

func TestNormalizeBodies(t *testing.T) {
	const a, b = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"a"}`, `{"message":"b","x":[1, 2]}`
	for _, c := range []struct{ name, body, want string }{
		{"a body", ` {"x":1, "logs" : [` + a + ` , ` + b + `]}`, ` {"x":1, "logs" : [` + a + ` , ` + b + `]}`},
		{"an array", "\n[" + a + ", " + b + "]\n", `{"logs":` + "\n[" + a + ", " + b + "]}\n"},
		{"no entry", "[]", `{"logs":[]}`},
		{"lines", a + "\n" + b + "\r\n\n", `{"logs":[` + a + "," + b + "]}"},
		{"an entry", a, `{"logs":[` + a + "]}"},
		{"lines of other things", "{}\n1\n\"x\"", `{"logs":[{},1,"x"]}`},
		{"neither", `"x"`, `"x"`},
		{"nothing", "", ""},
		{"logs that are no array", `{"logs":{"level":"INFO"}}`, `{"logs":{"level":"INFO"}}`},
		{"an escaped name", `{"l\u006fgs":[{"level":"INFO"}]}`, `{"l\u006fgs":[{"level":"info"}]}`},
	} {
		if got, _, err := normalize(c.body); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
	for body, at := range map[string]int{
		`{"logs":[{"level":"INFO"}]} {`: 28, `[{"level":"INFO"}`: 17, `[{}] 1`: 5, "{}\n{\"level\"}": 11, "{\"a\":1}\n{]": 9, `[{"level":"INFO",}]`: 17,
	} {
		_, _, err := normalize(body)
		var invalid *ingest.BodyError
		if !errors.As(err, &invalid) || invalid.Offset != at || invalid.Code != ingest.CodeInvalidJSON {
			t.Errorf("%s: %+v, want a fault at %d", body, invalid, at)
		}
	}
}

func TestNormalizeMembers(t *testing.T) {
	for from, to := range map[string]string{
		`"level":"INFO"`:             `"level":"info"`,
		`"level":"Warning"`:          `"level":"warn"`,
		`"level":"critical"`:         `"level":"fatal"`,
		`"level":"trace"`:            `"level":"debug"`,
		`"level":"\u0045RR"`:         `"level":"error"`,
		`"level":"loud"`:             "",
		`"level":30`:                 "",
		`"LEVEL":"INFO"`:             "",
		`"metadata":{"level":"ERR"}`: "",

		`"timestamp":"2026-01-31T12:00:00.120+02:00"`: `"timestamp":"2026-01-31T10:00:00.12Z"`,
		`"timestamp":"2026-01-31T12:00:00-0330"`:      `"timestamp":"2026-01-31T15:30:00Z"`,
		`"timestamp":"2026-03-01 00:30:00.5 +0100"`:   `"timestamp":"2026-02-28T23:30:00.5Z"`,
		`"timestamp":"2026-01-31t12:00:00z"`:          `"timestamp":"2026-01-31T12:00:00Z"`,
		`"timestamp":"2026-01-31 12:00:00+00"`:        `"timestamp":"2026-01-31T12:00:00Z"`,
		`"timestamp":"2026-01-31T12:00:00+00:00"`:     "",
		`"timestamp":"2026-01-31T12:00:00"`:           "",
		`"timestamp":"2026-01-31T12:00:00+1:30"`:      "",
		`"timestamp":"2026-01-31T12:00:00+24:00"`:     "",
		`"timestamp":"2026-02-30T12:00:00+02:00"`:     "",
		`"timestamp":"0000-01-01T00:00:00+01:00"`:     "",
		`"timestamp":"2026-01-31T12:00:00,5+01:00"`:   "",
		`"timestamp":"31/Jan/2026:12:00:00 +0000"`:    "",
		`"timestamp":1769860800`:                      `"timestamp":"2026-01-31T12:00:00Z"`,
		`"timestamp":1769860800.25`:                   `"timestamp":"2026-01-31T12:00:00.25Z"`,
		`"timestamp":1769860800123`:                   `"timestamp":"2026-01-31T12:00:00.123Z"`,
		`"timestamp":1769860800123.5`:                 `"timestamp":"2026-01-31T12:00:00.1235Z"`,
		`"timestamp":1769860800123456`:                `"timestamp":"2026-01-31T12:00:00.123456Z"`,
		`"timestamp":1769860800123456789`:             `"timestamp":"2026-01-31T12:00:00.123456789Z"`,
		`"timestamp":"1769860800123"`:                 `"timestamp":"2026-01-31T12:00:00.123Z"`,
		`"timestamp":0`:                               `"timestamp":"1970-01-01T00:00:00Z"`,
		`"timestamp":1769860800.1234567891234`:        `"timestamp":"2026-01-31T12:00:00.123456789Z"`,
		`"timestamp":99999999999999999999`:            "",
		`"timestamp":-5`:                              "",
		`"timestamp":1.7e9`:                           "",
		`"timestamp":"1769860800."`:                   "",
		`"timestamp":1769860800.123456789e3`:          "",
		`"timestamp":"1769860800.123456789 UTC"`:      "",
		`"timestamp":true`:                            "",

		`"error":{"stack_trace":"E: x\n\tat f (\"a.js\":1)\r\n  at g\u000a\n"}`: `"error":{"stack_trace":["E: x","\tat f (\"a.js\":1)","  at g"]}`,
		`"error":{"stack_trace":"C:\\new\\\nb"}`:                                `"error":{"stack_trace":["C:\\new\\","b"]}`,
		`"error":{"stack_trace":""}`:                                            `"error":{"stack_trace":[]}`,
		`"error":{"stack_trace":["a\nb"]}`:                                      "",
		`"error":{"context":{"stack_trace":"a\nb"}}`:                            "",
		`"error":"a\nb"`:       "",
		`"stack_trace":"a\nb"`: "",
	} {
		want, changed := `{"logs":[{`+from+"}]}", 0
		if to != "" {
			want, changed = `{"logs":[{`+to+"}]}", 1
		}
		if got, changes, err := normalize(`{"logs":[{` + from + "}]}"); err != nil || got != want || changes.Entries != changed {
			t.Errorf("%s: %q, %+v, %v, want %q", from, got, changes, err, want)
		}
	}
}

// What a parser accepts, it accepts unchanged after normalizing.
func TestNormalizeKeepsWhatIsValid(t *testing.T) {
	random := rand.New(rand.NewPCG(20261129, 1))
	strict, lenient := ingest.NewParser(smallLimits), ingest.NewParser(smallLimits)
	for range 20_000 {
		body := randomBody(random)
		if random.IntN(4) == 0 {
			body = string(damage(random, []byte(body)))
		}
		text, changes, err := normalize(body)
		before, refused := strict.Parse([]byte(body))
		if err != nil && refused == nil {
			t.Fatalf("%q: refused with %v", body, err)
		}
		if refused != nil {
			continue
		}
		after, err := lenient.Parse([]byte(text))
		if err != nil || len(after.Accepted) < len(before.Accepted) || changes.Entries == 0 && !bytes.Equal(after.Lines, before.Lines) {
			t.Fatalf("%q: %q, of which %d are accepted, and %d before", body, text, len(after.Accepted), len(before.Accepted))
		}
		for line := range bytes.Lines(before.Lines) {
			if !bytes.Contains(after.Lines, line) {
				t.Fatalf("%q: %q is not kept", body, line)
			}
		}
	}
}

// A normalizer gives up where its text can't be written.
func TestNormalizeStopsWithItsWriter(t *testing.T) {
	full := errors.New("no room")
	if _, err := new(ingest.Normalizer).Normalize([]byte(`[{"level":"INFO"}]`), false, failing{full}); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func BenchmarkNormalize(b *testing.B) {
	body := []byte(`{"logs":[` + strings.Repeat(goodEntry+",", 99) + goodEntry + `]}`)
	normalizer, to := new(ingest.Normalizer), new(bytes.Buffer)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		to.Reset()
		if _, err := normalizer.Normalize(body, false, to); err != nil {
			b.Fatal(err)
		}
	}
}
