package weir

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"
)

// logged returns what a program's calls send.
func logged(t *testing.T, o Options, h HandlerOptions, program func(*slog.Logger)) (entries []map[string]any) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		c, _ := start(t, f, o)
		program(slog.New(NewHandler(c, h)))
		shut(t, c)
		for _, r := range f.requests {
			entries = append(entries, r.entries...)
		}
	})
	return entries
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestHandlerIsOneOfSlog(t *testing.T) {
	var f *fake
	var c *Client
	slogtest.Run(t, func(t *testing.T) slog.Handler {
		f = &fake{}
		c, _ = start(t, f, Options{})
		return NewHandler(c, HandlerOptions{})
	}, func(t *testing.T) map[string]any {
		shut(t, c)
		entry := f.requests[0].entries[0]
		line := map[string]any{slog.LevelKey: entry["level"], slog.MessageKey: entry["message"]}
		if !strings.Contains(t.Name(), "zero-time") { // Weir requires a time: it is that of the call
			line[slog.TimeKey] = entry["timestamp"]
		}
		metadata, _ := entry["metadata"].(map[string]any)
		for key, value := range metadata {
			line[key] = value
		}
		return line
	})
}

type user struct{ name string }

func (u user) LogValue() slog.Value {
	return slog.GroupValue(slog.String("name", u.name), slog.String("password", "[hidden]"))
}

type panics struct{}

func (panics) MarshalJSON() ([]byte, error) { panic("no") }

func TestAttributesBecomeMetadata(t *testing.T) {
	entries := logged(t, Options{Environment: "staging", ProjectID: "shop"}, HandlerOptions{}, func(log *slog.Logger) {
		log.With("a", 1).WithGroup("g").With("b", "two").WithGroup("h").Info("all \"kinds\"\n\x01\xff\u2603",
			"f", 1.5, "inf", math.Inf(1), "bool", true, "d", time.Second, "u", uint64(math.MaxUint64),
			"t", time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "user", user{"ann"}, "cause", errors.New("text"),
			"list", []int{1}, "chan", make(chan int), "panics", panics{}, "nil", nil, slog.Group("empty"))
		log.WithGroup("unused").Info("none")
		log.Debug("below")
	})
	want := `{"environment":"staging","level":"info","message":"all \"kinds\"\n\u0001�☃","metadata":{"a":1,"g":{"b":"two","h":{` +
		`"bool":true,"cause":"text","chan":"!ERROR: json: unsupported type: chan int","d":1000000000,"f":1.5,"inf":"+Inf","list":[1],"nil":null,` +
		`"panics":"!PANIC: no","t":"2026-01-02T03:04:05.000000006Z","u":18446744073709552000,"user":{"name":"ann","password":"[hidden]"}}}},` +
		`"project_id":"shop","timestamp":"2000-01-01T00:00:00Z"}`
	if got := jsonOf(t, entries[0]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, none := jsonOf(t, entries[1]), `{"environment":"staging","level":"info","message":"none","project_id":"shop","timestamp":"2000-01-01T00:00:00Z"}`; got != none || len(entries) != 2 {
		t.Errorf("got  %s\nwant %s", got, none)
	}
}

func TestLevelsMapByRanges(t *testing.T) {
	for level, want := range map[slog.Level]string{-100: "debug", -4: "debug", -1: "debug", 0: "info", 3: "info", 4: "warn", 7: "warn", 8: "error", 11: "error", 12: "fatal", 100: "fatal"} {
		if got := levelNames[levelOf(level)]; got != want {
			t.Errorf("%d is %s, want %s", level, got, want)
		}
	}
}

type declined struct{ code int }

func (d *declined) Error() string { return fmt.Sprintf("declined: %d", d.code) }

// traced is as an error of github.com/pkg/errors.
type (
	frame  uintptr
	traced struct{ frames []frame }
)

func (traced) Error() string         { return "traced" }
func (t traced) StackTrace() []frame { return t.frames }

func newTraced() error {
	pcs := make([]uintptr, 8)
	var frames []frame
	for _, pc := range pcs[:runtime.Callers(1, pcs)] {
		frames = append(frames, frame(pc))
	}
	return traced{frames}
}

func TestErrorsHaveTypeMessageAndStack(t *testing.T) {
	own := newTraced()
	entries := logged(t, Options{}, HandlerOptions{}, func(log *slog.Logger) {
		log.Error("charge", "error", fmt.Errorf("charge: %w", &declined{51}), "err", errors.New("second"))
		log.Warn("below error", "err", errors.New("x"))
		log.With("error", own).Info("with frames", "id", 7)
		log.Error("text", "error", "a text")
	})
	type fault struct {
		Type, Message string
		StackTrace    []string `json:"stack_trace"`
	}
	faults := make([]fault, len(entries))
	for i, e := range entries {
		if err := json.Unmarshal([]byte(jsonOf(t, e["error"])), &faults[i]); err != nil {
			t.Fatal(err)
		}
	}
	if f := faults[0]; f.Type != "weir.declined" || f.Message != "charge: declined: 51" || !strings.Contains(f.StackTrace[0], "TestErrorsHaveTypeMessageAndStack") ||
		!strings.Contains(f.StackTrace[0], "(...)\n\t") || !strings.Contains(f.StackTrace[0], "handler_test.go:") || jsonOf(t, entries[0]["metadata"]) != `{"err":"second"}` {
		t.Errorf("got %q and %v", f, entries[0]["metadata"])
	}
	if f := faults[1]; f.Type != "errors.errorString" || f.StackTrace != nil {
		t.Errorf("got %q", f)
	}
	if f := faults[2]; f.Message != "traced" || !strings.Contains(f.StackTrace[0], "newTraced") || jsonOf(t, entries[2]["metadata"]) != `{"id":7}` {
		t.Errorf("got %q and %v", f, entries[2]["metadata"])
	}
	if entries[3]["error"] != nil || jsonOf(t, entries[3]["metadata"]) != `{"error":"a text"}` {
		t.Errorf("got %v", entries[3])
	}
}

func TestPlainEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		c, _ := start(t, f, Options{Environment: "staging", ProjectID: "shop"})
		c.Log(Entry{Level: slog.LevelError, Message: "m", Environment: "dev", Metadata: map[string]any{"b": map[string]any{"c": 1}, "a": user{"ann"}}, Error: &declined{1}})
		shut(t, c)
		entry := f.requests[0].entries[0]
		stack := entry["error"].(map[string]any)["stack_trace"].([]any)
		if !strings.Contains(stack[0].(string), "TestPlainEntries") {
			t.Errorf("the stack begins at %v", stack[0])
		}
		delete(entry, "error")
		if got, want := jsonOf(t, entry), `{"environment":"dev","level":"error","message":"m","metadata":{"a":{"name":"ann","password":"[hidden]"},"b":{"c":1}},"project_id":"shop","timestamp":"2000-01-01T00:00:00Z"}`; got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
}

type traceID struct{}

func TestContextAndRedaction(t *testing.T) {
	hide := func(groups []string, a slog.Attr) slog.Attr {
		switch {
		case a.Key == "password", a.Key == "error":
			return slog.String(a.Key, strings.Join(groups, "."))
		case a.Key == "gone":
			return slog.Attr{}
		case a.Key == slog.MessageKey:
			return slog.String(a.Key, strings.ReplaceAll(a.Value.String(), "4111", "****"))
		}
		return a
	}
	trace := func(ctx context.Context) map[string]any {
		if id := ctx.Value(traceID{}); id != nil {
			return map[string]any{"trace_id": id, "gone": 1}
		}
		return nil
	}
	entries := logged(t, Options{}, HandlerOptions{Redact: hide, WithContext: trace}, func(log *slog.Logger) {
		ctx := context.WithValue(t.Context(), traceID{}, "abc")
		log.WithGroup("g").With("password", "p").WithGroup("h").ErrorContext(ctx, "card 4111", "password", "q", "error", errors.New("e"), "gone", 1)
		log.Info("no context", "password", "r")
	})
	if got, want := jsonOf(t, []any{entries[0]["message"], entries[0]["metadata"], entries[0]["error"], entries[1]["metadata"]}),
		`["card ****",{"g":{"h":{"error":"g.h","password":"g.h"},"password":"g"},"trace_id":"abc"},null,{"password":""}]`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// chatty logs each request by the logger that it serves.
type chatty struct {
	*fake
	log *slog.Logger
}

func (c *chatty) RoundTrip(r *http.Request) (*http.Response, error) {
	c.log.InfoContext(r.Context(), "a request")
	return c.fake.RoundTrip(r)
}

func TestOwnRequestsAreNotLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		transport := &chatty{fake: &fake{}}
		c, err := open(Options{BaseURL: "https://weir.test/v1", APIKey: testKey}.withDefaults(), transport)
		if err != nil {
			t.Fatal(err)
		}
		transport.log = slog.New(NewHandler(c, HandlerOptions{}))
		transport.log.Info("one")
		time.Sleep(time.Minute)
		shut(t, c)
		if got := transport.messages(); len(got) != 1 || got[0] != "one" {
			t.Errorf("sent %q", got)
		}
	})
}
