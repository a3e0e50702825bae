package http

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	logs "go.opentelemetry.io/proto/otlp/logs/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/otlp"
	"github.com/weirlog/weir/shared/httpapi"
)

func logRecords(uid bool, messages ...string) []byte {
	scope := &logs.ScopeLogs{}
	for i, message := range messages {
		record := &logs.LogRecord{TimeUnixNano: 1769860800_000000000, SeverityNumber: 9, Body: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: message}}}
		if uid {
			record.Attributes = []*common.KeyValue{{Key: "log.record.uid", Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: fmt.Sprint(i)}}}}
		}
		scope.LogRecords = append(scope.LogRecords, record)
	}
	wire, err := proto.Marshal(&logs.LogsData{ResourceLogs: []*logs.ResourceLogs{{ScopeLogs: []*logs.ScopeLogs{scope}}}})
	if err != nil {
		panic(err)
	}
	return wire
}

func serveOTLP(in *Intake, body []byte, headers ...string) *httptest.ResponseRecorder {
	r := newPost(bytes.NewReader(body), append([]string{"Content-Type", string(otlp.Protobuf)}, headers...)...)
	w := httptest.NewRecorder()
	httpapi.Handle(answersOTLP(in.PostOTLP))(w, r)
	return w
}

// partial reads an ExportLogsServiceResponse.
func partial(body []byte) (rejected uint64, reason string) {
	_, _, n := protowire.ConsumeTag(body)
	if n < 0 {
		return 0, ""
	}
	body, _ = protowire.ConsumeBytes(body[n:])
	_, _, n = protowire.ConsumeTag(body)
	rejected, m := protowire.ConsumeVarint(body[n:])
	_, _, k := protowire.ConsumeTag(body[n+m:])
	reason, _ = protowire.ConsumeString(body[n+m+k:])
	return rejected, reason
}

// Records are kept and charged as the entries that they become; those that
// are at fault are counted in partial_success.
func TestOTLP(t *testing.T) {
	log := new(textLog)
	in := newIntake(t, log, plenty)
	w := serveOTLP(in, logRecords(false, "a", strings.Repeat("x", 10241), "b"))
	const kept = `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"%s","metadata":{}}` + "\n"
	if want := fmt.Sprintf(kept+kept, "a", "b"); w.Code != http.StatusOK || log.lines != want {
		t.Fatalf("%d %s: kept %s, want %s", w.Code, w.Body, log.lines, want)
	}
	if rejected, reason := partial(w.Body.Bytes()); rejected != 1 || !strings.HasPrefix(reason, "/logs/1/message: The message has 10241 bytes") {
		t.Errorf("%d rejected: %s", rejected, reason)
	}
	if w := serveOTLP(in, logRecords(false, "a")); w.Code != http.StatusOK || w.Body.Len() > 0 || w.Header().Get("Content-Type") != string(otlp.Protobuf) || w.Header().Get("X-RateLimit-Limit") == "" {
		t.Errorf("%d %q %v", w.Code, w.Body, w.Header())
	}
	if w := serveOTLP(in, nil); w.Code != http.StatusOK || w.Body.Len() > 0 {
		t.Errorf("a request without records: %d %s", w.Code, w.Body)
	}
	w = serveOTLP(in, []byte(`{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"m"}}]}]}]}`), "Content-Type", "application/json")
	if w.Code != http.StatusOK || w.Body.String() != "{}" || !strings.Contains(log.lines, `"message":"m"`) {
		t.Errorf("JSON: %d %s", w.Code, w.Body)
	}
	messages := make([]string, 8192)
	if w := serveOTLP(in, logRecords(false, messages...)); w.Code != http.StatusOK || strings.Count(log.lines, "\n") != 8192 {
		t.Errorf("as many as a Collector sends: %d %s", w.Code, w.Body)
	}
	if use := in.Bodies.Use(); use != (BodyUse{}) {
		t.Errorf("memory is still lent: %+v", use)
	}
}

// What may be sent again is 429 or 503 with Retry-After, what may not 4xx.
// The body is a google.rpc.Status.
func TestOTLPRefusals(t *testing.T) {
	down := newIntake(t, &memoryLog{err: errors.New("no broker")}, plenty)
	starting := newIntake(t, new(memoryLog), plenty)
	starting.Ready = func() error { return errors.New("not yet") }
	fine := logRecords(false, "a")
	for _, c := range []struct {
		name    string
		in      *Intake
		body    []byte
		headers []string
		status  int
		retry   bool
		want    string
	}{
		{"no broker", down, fine, nil, 503, true, "unavailable"},
		{"starting", starting, fine, nil, 503, true, "unavailable"},
		{"quota", newIntake(t, new(memoryLog), ingest.Account{}), fine, nil, 429, true, "quota_exceeded"},
		{"key", down, fine, []string{"X-Api-Key", "weir_x"}, 401, false, "invalid_api_key"},
		{"bearer", down, fine, []string{"X-Api-Key", "", "Authorization", "Bearer " + secret}, 401, false, "x-api-key"},
		{"no OTLP", down, []byte("x"), nil, 400, false, "invalid_otlp"},
		{"no OTLP in JSON", down, []byte("[]"), []string{"Content-Type", "application/json"}, 400, false, "invalid_otlp"},
		{"media type", down, fine, []string{"Content-Type", "text/plain"}, 400, false, "application/x-protobuf"},
		{"protobuf with a parameter", down, []byte("x"), []string{"Content-Type", "application/x-protobuf; charset=utf-8"}, 400, false, "invalid_otlp"},
		{"no valid record", down, logRecords(false, strings.Repeat("x", 10241)), nil, 400, false, "/logs/0/message"},
		{"too many", down, logRecords(false, make([]string, maxRecords+1)...), nil, 400, false, "20000"},
	} {
		w := serveOTLP(c.in, c.body, c.headers...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.want) || (w.Header().Get("Retry-After") != "") != c.retry {
			t.Errorf("%s: %d %s %v", c.name, w.Code, w.Body, w.Header())
		}
		if strings.HasPrefix(c.name, "protobuf") && w.Header().Get("Content-Type") != string(otlp.Protobuf) {
			t.Errorf("%s: %v", c.name, w.Header())
		}
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s: %s", c.name, w.Body)
		}
	}
}

// What never has room is not to be sent again.
func TestOTLPWithoutRoom(t *testing.T) {
	in := newIntake(t, new(memoryLog), plenty)
	in.Bodies = NewBodies(BodyLimits{Bytes: 32 << 20, Max: 16 << 20, Requests: 8, LargeBodies: 8}, in.Service.Clock)
	for _, size := range []int{600 << 10, 3 << 20} {
		body := `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"` + strings.Repeat("x", size) + `"}}]}]}]}`
		w := serveOTLP(in, []byte(body), "Content-Type", "application/json")
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "body_too_large") {
			t.Errorf("%d bytes: %d %s", size, w.Code, w.Body)
		}
	}
	if use := in.Bodies.Use(); use.SmallBytes+use.LargeBytes > 0 {
		t.Errorf("memory is still lent: %+v", use)
	}
}

// Records with ids are accepted once, though the protocol has no idempotency keys.
func TestOTLPRepeats(t *testing.T) {
	log := new(memoryLog)
	in := newIntake(t, log, plenty)
	for range 2 {
		if w := serveOTLP(in, logRecords(true, "a", "b")); w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	serveOTLP(in, logRecords(true, "a"))
	if log.lines != 3 {
		t.Errorf("%d entries were accepted, want 2 once and another", log.lines)
	}
}

// BenchmarkPostOTLP has the entries of BenchmarkPost as log records: what
// their translation adds. Compare processor time.
func BenchmarkPostOTLP(b *testing.B) {
	in := newIntake(b, nothing{}, plenty)
	entries := make([]string, 100)
	for i := range entries {
		entries[i] = "cart 4711 was opened by a customer who looked at 12 articles before, and at " + strings.Repeat("more ", 60)
	}
	for name, body := range map[string][]byte{"otlp": logRecords(false, entries...), "logs": asEntries(b, entries)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var w *httptest.ResponseRecorder
				if name == "otlp" {
					w = serveOTLP(in, body)
				} else {
					w = serve(in, newPost(bytes.NewReader(body)))
				}
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}

func asEntries(b *testing.B, messages []string) []byte {
	log := new(textLog)
	if w := serveOTLP(newIntake(b, log, plenty), logRecords(false, messages...)); w.Code != http.StatusOK {
		b.Fatal(w.Body)
	}
	return []byte(`{"logs":[` + strings.ReplaceAll(strings.TrimSuffix(log.lines, "\n"), "\n", ",") + `]}`)
}
