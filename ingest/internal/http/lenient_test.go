package http

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/weirlog/weir/ingest"
)

// A textLog keeps the lines of what was published last.
type textLog struct{ lines string }

func (l *textLog) Publish(_ context.Context, accepted ingest.Acceptance) (ingest.Outcome, error) {
	l.lines = ""
	for _, part := range accepted.Parts {
		l.lines += string(part.Lines)
	}
	return ingest.Outcome{Status: ingest.Published}, nil
}

// With lenient handling the normalized entries are kept and charged, and
// the answer says what was changed.
func TestLenient(t *testing.T) {
	const kept = `{"timestamp":"2026-01-31T12:00:00Z","level":"warn","message":"m","error":{"stack_trace":["a","b"]}}` + "\n"
	const sent = `{"timestamp": 1769860800, "level": "WARNING", "message": "m", "error": {"stack_trace": "a\nb"}}`
	packed := new(bytes.Buffer)
	zip := gzip.NewWriter(packed)
	_, _ = io.WriteString(zip, sent+"\n"+sent)
	_ = zip.Close()
	for _, c := range []struct {
		name, body string
		headers    []string
		entries    int
	}{
		{"body", `{"logs":[` + sent + `]}`, nil, 1},
		{"array", "[" + sent + "," + sent + "]", nil, 2},
		{"lines", sent + "\n" + sent + "\n", []string{"Content-Type", "application/x-ndjson"}, 2},
		{"compressed lines", packed.String(), []string{"Content-Type", "application/jsonl; charset=UTF-8", "Content-Encoding", "gzip"}, 2},
		{"more than a small buffer", "[" + strings.Repeat(sent+",", 999) + sent + "]", nil, 1000},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := new(textLog)
			in := newIntake(t, log, plenty)
			w := serve(in, newPost(strings.NewReader(c.body), append(c.headers, "Prefer", "handling=lenient")...))
			var answer struct {
				Processed, BytesUsed, Normalized int
				Members                          map[string]int `json:"normalized_members"`
				Bytes                            int            `json:"bytes_used"`
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if log.lines != strings.Repeat(kept, c.entries) {
				t.Errorf("kept %.300s", log.lines)
			}
			if answer.Processed != c.entries || answer.Bytes != c.entries*(len(kept)-1) || answer.Normalized != c.entries ||
				answer.Members["level"] != c.entries || answer.Members["timestamp"] != c.entries || answer.Members["error.stack_trace"] != c.entries {
				t.Errorf("%s", w.Body)
			}
			if w.Header().Get("Preference-Applied") != "handling=lenient" {
				t.Errorf("%v", w.Header())
			}
			if use := in.Bodies.Use(); use != (BodyUse{}) {
				t.Errorf("memory is still lent: %+v", use)
			}
		})
	}
}

// Faults name the entry as it was sent; without the preference nothing is normalized.
func TestLenientRefusals(t *testing.T) {
	in := newIntake(t, new(textLog), plenty)
	in.Bodies = testBodies(64<<20, 1<<20, in.Service.Clock)
	for _, c := range []struct{ name, body, prefer, media, want string }{
		{"strict", `[{"level":"INFO"}]`, "", "application/json", `"code":"invalid_type"`},
		{"protobuf", "x", "handling=strict", "application/x-protobuf", "sends to /v1/otlp/v1/logs"},
		{"strict lines", `{}`, "handling=strict", "application/x-ndjson", "Prefer: handling=lenient"},
		{"other text", `{}`, "handling=lenient", "text/plain", "unsupported_media_type"},
		{"a line that is no JSON", sampleEntry(0) + "\n{]", "handling=lenient", "application/jsonl", `"pointer":"/logs/1"`},
		{"a line without its level", sampleEntry(0) + "\n{}", "handling=lenient", "application/jsonl", `"pointer":"/logs/1/level"`},
		{"larger once it is normalized", "[" + strings.Repeat("5,", 512<<10-1) + "5]", "handling=lenient", "application/json", "body_too_large"},
	} {
		w := serve(in, newPost(strings.NewReader(c.body), "Prefer", c.prefer, "Content-Type", c.media))
		if !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
	}
	if use := in.Bodies.Use(); use.SmallBytes+use.LargeBytes+use.UnderWay != 0 {
		t.Errorf("memory is still lent: %+v", use)
	}
}

// The same lenient body with an idempotency key has the effect of one.
func TestLenientRepeats(t *testing.T) {
	in := newIntake(t, new(textLog), plenty)
	for i, want := range []string{"", "true"} {
		w := serve(in, newPost(strings.NewReader(`[{"timestamp":1,"level":"INFO","message":""}]`), "Prefer", "handling=lenient", "Idempotency-Key", "k"))
		if w.Code != http.StatusOK || w.Header().Get("Idempotency-Replayed") != want {
			t.Errorf("request %d: %d %s", i, w.Code, w.Body)
		}
	}
}

// Large bodies that are rewritten hold twice their memory for a while, and
// all get through.
func TestLenientLargeBodies(t *testing.T) {
	in := newIntake(t, new(memoryLog), plenty)
	in.Bodies = testBodies(48<<20, 8<<20, in.Service.Clock)
	large := []byte(`{"logs":[` + sampleEntry(0) + `],"x":"` + strings.Repeat("y", 6<<20) + `"}`)
	var wait sync.WaitGroup
	var good atomic.Int64
	for range 6 {
		wait.Go(func() {
			for range 3 {
				for serve(in, newPost(struct{ io.Reader }{bytes.NewReader(large)}, "Prefer", "handling=lenient")).Code != http.StatusOK {
					time.Sleep(time.Millisecond) // as a client does on Retry-After
				}
				good.Add(1)
			}
		})
	}
	wait.Wait()
	if use := in.Bodies.Use(); good.Load() != 18 || use.SmallBytes+use.LargeBytes+use.UnderWay != 0 {
		t.Errorf("%d accepted, %+v", good.Load(), use)
	}
}
