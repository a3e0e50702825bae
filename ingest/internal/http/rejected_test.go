package http

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/ingest/internal/postgres"
	"github.com/weirlog/weir/ingest/internal/rejected"
	"github.com/weirlog/weir/ingest/internal/searches"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/httpapi/openapitest"
	"github.com/weirlog/weir/shared/httpapi/routetest"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg/pgtest"
	"github.com/weirlog/weir/shared/testenv"
)

// A counter takes requests of key_1, and shows what was rejected.
type counter struct {
	*Intake
	routes http.Handler
}

func newCounter(t *testing.T) *counter {
	t.Helper()
	in := newIntake(t, &memoryLog{}, plenty)
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	in.Rejected = rejected.NewRecorder(rejected.Config{
		Pool: pool, Clock: in.Service.Clock, Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler),
	})
	directory := identity.NewDirectory()
	created, err := json.Marshal(contract.ProjectCreated{Organization: "org_1", Project: "prj_1", Name: "Shop"})
	testenv.Must(t, err)
	testenv.Must(t, directory.Apply(contract.TypeProjectCreated, created))
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: in.Service.Clock})
	httpapi.Describe(router, module.Name, OpenAPI())
	guard := identity.NewGuard(identity.GuardConfig{Credentials: in.Service.Credentials, Clock: in.Service.Clock})
	service := &rejected.Service{Pool: pool, Searches: &searches.Service{Directory: directory}, Clock: in.Service.Clock}
	rejecting(&Rejected{service}).Mount(router.With(guard.RequireAPIKey()))
	return &counter{in, openapitest.Handler(t, routetest.Handler(router))}
}

// list saves what was rejected, and lists it.
func (c *counter) list(t *testing.T, query string, want int) (list httpapi.List[rejectedBody], text string) {
	t.Helper()
	testenv.Must(t, c.Rejected.Save(t.Context()))
	request := httptest.NewRequest(http.MethodGet, "/v1/projects/"+query, nil)
	request.Header.Set("X-Api-Key", secret)
	answer := httptest.NewRecorder()
	if c.routes.ServeHTTP(answer, request); answer.Code != want {
		t.Fatalf("%s: %d %s", query, answer.Code, answer.Body)
	}
	testenv.Must(t, json.Unmarshal(answer.Body.Bytes(), &list))
	return list, answer.Body.String()
}

const loudEntry = `{"timestamp":"2026-01-31T12:00:00Z","level":"LOUD","message":"a"}`

// Each protocol's rejected entries have their samples; so have bodies and
// headers that are at fault. What is refused for other reasons has none.
func TestRejectedEntries(t *testing.T) {
	long := strings.Repeat("x", 10241)
	for name, c := range map[string]struct {
		send    func(in *Intake) func(http.ResponseWriter, *http.Request) error
		body    string
		headers []string
		code    string // empty: nothing is recorded
		sample  rejectedSampleBody
	}{
		"an entry":        {body: `{"logs":[` + loudEntry + `, ` + goodEntry + `]}`, code: "invalid_level", sample: rejectedSampleBody{Pointer: "/logs/0/level", Text: loudEntry, Fix: "Send one of debug"}},
		"the only entry":  {body: `{"logs":[` + loudEntry + `]}`, code: "invalid_level", sample: rejectedSampleBody{Pointer: "/logs/0/level", Text: loudEntry}},
		"a lenient entry": {body: `[{"level":"WARN","message":"a"}]`, headers: []string{"Prefer", "handling=lenient"}, code: "missing_field", sample: rejectedSampleBody{Pointer: "/logs/0/timestamp", Text: `{"level":"warn","message":"a"}`}},
		"no JSON":         {body: `{"logs":[{"message":oops}]}`, code: "invalid_json", sample: rejectedSampleBody{Pointer: "/logs/0", Text: `{"logs":[{"message":oops}]}`, Fix: "Send JSON"}},
		"no lenient JSON": {body: `{"message":oops}`, headers: []string{"Prefer", "handling=lenient"}, code: "invalid_json", sample: rejectedSampleBody{Pointer: "/logs/0", Text: `{"message":oops}`}},
		"no entries":      {body: `{"logs":[]}`, code: "empty_batch", sample: rejectedSampleBody{Pointer: "/logs", Text: `{"logs":[]}`}},
		"a header":        {body: `x`, headers: []string{"Content-Type", "text/plain"}, code: "unsupported_media_type", sample: rejectedSampleBody{Detail: `The content type is "text/plain"`}},
		"too large":       {body: `x`, headers: []string{"Content-Length", "200000000"}, code: "body_too_large"},
		"OTLP": {
			send: func(in *Intake) func(http.ResponseWriter, *http.Request) error { return in.PostOTLP }, code: "message_too_large",
			body:   `{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1769860800000000000","body":{"stringValue":"` + long + `"}}]}]}]}`,
			sample: rejectedSampleBody{Pointer: "/logs/0/message", Text: `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"xxx`, Cut: true},
		},
		"no OTLP": {
			send: func(in *Intake) func(http.ResponseWriter, *http.Request) error { return in.PostOTLP }, body: `{"resourceLogs":7}`, code: "invalid_otlp",
			sample: rejectedSampleBody{Text: `{"resourceLogs":7}`},
		},
		"no protobuf": {
			send: func(in *Intake) func(http.ResponseWriter, *http.Request) error { return in.PostOTLP }, body: "\x0a\xff\x00", code: "invalid_otlp",
			headers: []string{"Content-Type", "application/x-protobuf"},
		},
		"Loki": {
			send: func(in *Intake) func(http.ResponseWriter, *http.Request) error { return in.PostLoki }, body: strings.Replace(pushed, "%s", long, 1), code: "message_too_large",
			sample: rejectedSampleBody{Pointer: "/logs/1/message", Text: `{"timestamp":"2026-01-31T12:00:00Z","level":"info","message":"xxx`, Cut: true},
		},
		"a document": {
			send: func(in *Intake) func(http.ResponseWriter, *http.Request) error { return in.PostBulk }, body: "{\"create\":{}}\nno JSON\n", code: "invalid_document",
			sample: rejectedSampleBody{Text: "no JSON", Detail: "The document can't be read"},
		},
		"no bulk": {
			send: func(in *Intake) func(http.ResponseWriter, *http.Request) error { return in.PostBulk }, body: "no JSON\n", code: "invalid_bulk",
			sample: rejectedSampleBody{Text: "no JSON\n"},
		},
		"the key":   {body: `{"logs":[` + loudEntry + `]}`, headers: []string{"X-Api-Key", "weir_wrong"}},
		"all right": {body: `{"logs":[` + goodEntry + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			at := newCounter(t)
			send := at.Post
			if c.send != nil {
				send = c.send(at.Intake)
			}
			r := newPost(strings.NewReader(c.body), c.headers...)
			if name == "too large" {
				r.ContentLength = 200_000_000
			}
			httpapi.Handle(send)(httptest.NewRecorder(), r)
			list, text := at.list(t, "prj_1/rejected-entries", http.StatusOK)
			if c.code == "" {
				if len(list.Items) != 0 {
					t.Errorf("got %s", text)
				}
				return
			}
			if len(list.Items) != 1 || list.Items[0].Code != c.code || list.Items[0].Key != "key_1" || list.Items[0].Entries != 1 || len(list.Items[0].Samples) != 1 {
				t.Fatalf("got %s", text)
			}
			sample := list.Items[0].Samples[0]
			whole := c.sample.Cut || sample.Text == c.sample.Text
			if sample.Pointer != c.sample.Pointer || !whole || !strings.HasPrefix(sample.Text, c.sample.Text) || sample.Cut != c.sample.Cut ||
				sample.Detail == "" || !strings.HasPrefix(sample.Detail, c.sample.Detail) || !strings.HasPrefix(sample.Fix, c.sample.Fix) {
				t.Errorf("got %+v", sample)
			}
		})
	}
}

// A list is filtered, comes in pages, and is of a project that the key may read.
func TestRejectedPages(t *testing.T) {
	at := newCounter(t)
	serve(at.Intake, newPost(strings.NewReader(`{"logs":[`+loudEntry+`,{}]}`)))
	serve(at.Intake, newPost(strings.NewReader(`{`)))
	var codes []string
	for next := "prj_1/rejected-entries?limit=1"; next != ""; {
		list, _ := at.list(t, next, http.StatusOK)
		codes = append(codes, list.Items[0].Code)
		if next = ""; list.NextCursor != nil {
			next = "prj_1/rejected-entries?limit=1&cursor=" + *list.NextCursor
		}
	}
	if want := []string{"invalid_json", "invalid_level", "missing_field"}; !slices.Equal(codes, want) {
		t.Errorf("got %v", codes)
	}
	if list, text := at.list(t, "prj_1/rejected-entries?key=key_1&code=missing_field", http.StatusOK); len(list.Items) != 1 || list.Items[0].Entries != 1 {
		t.Errorf("got %s", text)
	}
	at.list(t, "prj_1/rejected-entries?cursor=x", http.StatusBadRequest)
	at.list(t, "prj_1/rejected-entries?key=%00", http.StatusBadRequest)
	at.list(t, "prj_2/rejected-entries", http.StatusNotFound)
}

// BenchmarkPostRejected measures a request of 1,000 entries, none of which is valid.
func BenchmarkPostRejected(b *testing.B) {
	in := newIntake(b, nothing{}, plenty)
	in.Rejected = rejected.NewRecorder(rejected.Config{Clock: in.Service.Clock, Metrics: prometheus.NewRegistry()})
	text := []byte(`{"logs":[` + strings.Repeat(strings.Replace(sampleEntry(0), `"level":"`, `"level":"LOUD`, 1)+",", 999) + loudEntry + `]}`)
	reader := bytes.NewReader(text)
	r := newPost(nil)
	r.ContentLength = int64(len(text))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		reader.Reset(text)
		r.Body = io.NopCloser(reader)
		httpapi.Handle(in.Post)(&discard{http.Header{}}, r)
	}
}
