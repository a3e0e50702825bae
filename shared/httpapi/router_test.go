package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/go-chi/chi/v5"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/tracing/otlp"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// call sends one request to a router with the only route /do.
func call(t *testing.T, handle func(http.ResponseWriter, *http.Request) error, request *http.Request) (*httptest.ResponseRecorder, *bytes.Buffer) {
	t.Helper()
	var logged bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
	router := httpapi.NewRouter(httpapi.Options{Logger: logger, Clock: time.Now})
	router.Post("/do", httpapi.Handle(handle))
	recorder := httptest.NewRecorder()
	router.ServeHTTP(recorder, request)
	return recorder, &logged
}

func post(body string) *http.Request {
	request := httptest.NewRequest(http.MethodPost, "/do?key=in-the-query", strings.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	return request
}

func members(t *testing.T, recorder *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal(recorder.Body.Bytes(), &body); err != nil {
		t.Fatalf("cannot read %q: %v", recorder.Body, err)
	}
	return body
}

// A problem has all members of the interface, its request's id in
// body and header, and its own additions.
func TestProblem(t *testing.T) {
	recorder, _ := call(t, func(http.ResponseWriter, *http.Request) error {
		problem := httpapi.Invalid("/logs/3/level", "invalid_level", `level is "loud".`, "Use one of the five levels.")
		return problem.With("resets_at", "soon").RetryAfter(1100 * time.Millisecond)
	}, post(""))
	body := members(t, recorder)
	for _, member := range []string{"type", "title", "status", "detail", "code", "message", "request_id", "errors", "resets_at"} {
		if body[member] == nil {
			t.Errorf("%q is missing in %s", member, recorder.Body)
		}
	}
	if body["request_id"] != recorder.Header().Get("X-Request-Id") {
		t.Errorf("request_id %v, header %q", body["request_id"], recorder.Header().Get("X-Request-Id"))
	}
	if got := recorder.Header().Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After = %q, want 2", got)
	}
	if got := recorder.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q", got)
	}
}

// At most 100 faults are listed, and the answer says that there are more.
func TestProblemTruncatesItsFaults(t *testing.T) {
	recorder, _ := call(t, func(http.ResponseWriter, *http.Request) error {
		problem := httpapi.NewProblem(http.StatusBadRequest, "invalid_entry", "All are wrong.")
		problem.Faults = make([]httpapi.Fault, 101)
		return problem
	}, post(""))
	body := members(t, recorder)
	if listed := len(body["errors"].([]any)); listed != 100 || body["errors_truncated"] != true {
		t.Errorf("%d faults, truncated %v; want 100, true", listed, body["errors_truncated"])
	}
}

// Internal errors and panics are logged with the request's id and never shown.
func TestInternalErrorsStayInside(t *testing.T) {
	failures := map[string]func(http.ResponseWriter, *http.Request) error{
		"error": func(http.ResponseWriter, *http.Request) error { return errors.New("relation secrets is broken") },
		"panic": func(http.ResponseWriter, *http.Request) error { panic("relation secrets is broken") },
	}
	for name, handle := range failures {
		t.Run(name, func(t *testing.T) {
			recorder, logged := call(t, handle, post(""))
			if recorder.Code != http.StatusInternalServerError || members(t, recorder)["code"] != "internal" {
				t.Errorf("answer = %d %s, want 500 internal", recorder.Code, recorder.Body)
			}
			if strings.Contains(recorder.Body.String(), "secrets") {
				t.Errorf("the answer shows the inside: %s", recorder.Body)
			}
			if !strings.Contains(logged.String(), "secrets") || !strings.Contains(logged.String(), recorder.Header().Get("X-Request-Id")) {
				t.Errorf("the log lacks the cause or the request's id: %s", logged)
			}
			if strings.Contains(logged.String(), "in-the-query") {
				t.Errorf("the log shows the query: %s", logged)
			}
		})
	}
}

// What does not exist is named as it was sent: unescaped, it could
// look like what does.
func TestUnknownPathAndMethod(t *testing.T) {
	for _, c := range []struct {
		method, path, code string
		status             int
	}{
		{http.MethodPost, "/nowhere", "not_found", 404}, {http.MethodPost, "/%64o", "not_found", 404}, {http.MethodPut, "/do", "method_not_allowed", 405},
		{http.MethodOptions, "*", "not_found", 404}, {http.MethodConnect, "/do", "method_not_allowed", 405}, {"PRI", "*", "method_not_allowed", 405},
	} {
		recorder, _ := call(t, nil, httptest.NewRequest(c.method, c.path, nil))
		problem := members(t, recorder)
		if recorder.Code != c.status || problem["code"] != c.code || !strings.Contains(fmt.Sprint(problem["detail"]), strconv.Quote(c.path)) {
			t.Errorf("%s %s = %d %s, want %d %s", c.method, c.path, recorder.Code, recorder.Body, c.status, c.code)
		}
	}
}

// A small body is exactly one JSON object with known members; each
// error names the fault.
func TestReadJSONRefuses(t *testing.T) {
	cases := []struct{ name, contentType, body, code, pointer string }{
		{"another type", "text/plain", `{}`, "unsupported_media_type", ""},
		{"another charset", "application/json; charset=latin1", `{}`, "unsupported_media_type", ""},
		{"no JSON", "application/json", `{"name":`, "invalid_json", ""},
		{"an unknown member", "application/json", `{"admin":true}`, "unknown_field", "/admin"},
		{"another case", "application/json", `{"NAME":"a"}`, "unknown_field", "/NAME"},
		{"a name given twice", "application/json", `{"name":"a","name":"b"}`, "duplicate_field", "/name"},
		{"invalid UTF-8", "application/json", "{\"name\":\"\xff\"}", "invalid_json", ""},
		{"a lone surrogate", "application/json", `{"name":"\ud800"}`, "invalid_json", ""},
		{"something after it", "application/json", `{}{}`, "invalid_json", ""},
		{"a wrong type", "application/json", `{"name":7}`, "invalid_request", "/name"},
		{"no object", "application/json", `[]`, "invalid_request", ""},
		{"too much", "application/json", `{"name":"` + strings.Repeat("a", 64<<10) + `"}`, "body_too_large", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			request := post(c.body)
			request.Header.Set("Content-Type", c.contentType)
			recorder, _ := call(t, func(w http.ResponseWriter, r *http.Request) error {
				var value struct {
					Name string `json:"name"`
				}
				return httpapi.ReadJSON(w, r, &value)
			}, request)
			if recorder.Code != http.StatusBadRequest || members(t, recorder)["code"] != c.code {
				t.Errorf("answer = %d %s, want 400 %s", recorder.Code, recorder.Body, c.code)
			}
			fault := members(t, recorder)["errors"].([]any)[0].(map[string]any)
			if fault["pointer"] != c.pointer || strings.Contains(recorder.Body.String(), "struct") {
				t.Errorf("fault %v, want one at %q in words for people", fault, c.pointer)
			}
		})
	}
}

// An unreadable query is refused, as a dropped filter would widen a search.
// A path with other methods names them, and HEAD is GET without a body.
func TestQueriesAndMethods(t *testing.T) {
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	router.Get("/list", func(w http.ResponseWriter, _ *http.Request) { httpapi.WriteJSON(w, http.StatusOK, "all") })
	for _, c := range []struct {
		method, target string
		status         int
	}{
		{http.MethodGet, "/list?level=error", 200}, {http.MethodHead, "/list", 200}, {http.MethodPost, "/list", 405},
		{http.MethodGet, "/list?level=fatal;x=1", 400}, {http.MethodGet, "/list?level=%zz", 400},
	} {
		recorder := httptest.NewRecorder()
		router.ServeHTTP(recorder, httptest.NewRequest(c.method, c.target, nil))
		if recorder.Code != c.status {
			t.Errorf("%s %s = %d, want %d", c.method, c.target, recorder.Code, c.status)
		}
		if allow := recorder.Header().Get("Allow"); c.status == 405 && allow != "GET, HEAD" {
			t.Errorf("Allow = %q, want GET, HEAD", allow)
		}
	}
}

// The last page of a list has no cursor.
func TestEmptyList(t *testing.T) {
	last := httpapi.NewList[string](nil, nil, 2, nil)
	if text, _ := json.Marshal(last); string(text) != `{"items":[],"next_cursor":null}` {
		t.Errorf("the empty list is %s", text)
	}
}

func TestParsePage(t *testing.T) {
	for query, want := range map[string]int{"": 100, "limit=1": 1, "limit=1000": 1000, "limit=0": -1, "limit=1001": -1, "limit=ten": -1} {
		page, err := httpapi.ParsePage(httptest.NewRequest(http.MethodGet, "/?"+query, nil))
		if (err != nil) != (want < 0) || err == nil && page.Limit != want {
			t.Errorf("ParsePage(%q) = %+v, %v; want %d", query, page, err, want)
		}
	}
}

// A Secret stays hidden in all usual ways to print text.
func TestSecretHides(t *testing.T) {
	const canary = "weirsvc_canary"
	secret := struct{ Token httpapi.Secret }{canary}
	var logged bytes.Buffer
	slog.New(slog.NewTextHandler(&logged, nil)).Info("config", "token", secret.Token, "all", secret)
	asJSON, _ := json.Marshal(secret)
	shown := fmt.Sprintf("%v %+v %#v %s %q %x %d", secret, secret, secret, secret.Token, secret.Token, secret.Token, secret.Token)
	for _, text := range []string{shown, logged.String(), string(asJSON)} {
		if strings.Contains(text, canary) || strings.Contains(text, fmt.Sprintf("%x", canary)) {
			t.Errorf("the secret shows in %s", text)
		}
	}
	if secret.Token.Reveal() != canary {
		t.Error("Reveal does not reveal")
	}
}

// An unknown path leads to what it is a slip of, a wrong method to the right ones.
func TestUnknownPathsLeadOn(t *testing.T) {
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	for _, route := range []string{"/v1/logs", "/v1/otlp/v1/logs", "/v1/things", "/v1/things/{id}"} {
		router.Post(route, func(http.ResponseWriter, *http.Request) {})
	}
	router.Put("/v1/otlp/v1/logs", func(http.ResponseWriter, *http.Request) {})
	for path, want := range map[string]string{
		"/logs": `Did you mean \"/v1/logs\"?`, "/v1/log": `\"/v1/logs\"?`, "/v1/logs/": `\"/v1/logs\"?`, "/api/v1/Logs": `\"/v1/logs\"?`,
		"/otlp/v1/logs": `\"/v1/otlp/v1/logs\"?`, "/v1/otlp": `\"/v1/otlp/v1/logs\"?`, "/v1/otlp/logs": `\"/v1/otlp/v1/logs\"?`, "/v1/thing": `\"/v1/things\"?`,
		"/v1/things/7/x": `There is nothing at \"/v1/things/7/x\"."`, "/": `There is nothing at \"/\"."`,
		"/v1": `There is nothing at \"/v1\"."`, "/v1/other": `There is nothing at \"/v1/other\"."`, "/v1/logs": `GET is not possible on \"/v1/logs\"; possible: POST.`,
	} {
		w := httptest.NewRecorder()
		router.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %s, want %s", path, w.Body, want)
		}
	}
}

// Endless requests for unknown paths and methods are answered at a
// pace, those of another network at once.
func TestUnknownPathsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		proxy := netip.MustParsePrefix("192.0.2.1/32")
		router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Proxies: []netip.Prefix{proxy}})
		router.Post("/v1/things", func(http.ResponseWriter, *http.Request) {})
		took := func(client string, times int) time.Duration {
			begun := time.Now()
			for i := range times {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, []string{"/v1/things", "/v1/nothing"}[i%2], nil)
				r.RemoteAddr = "192.0.2.1:1"
				r.Header.Set("X-Forwarded-For", client)
				w := httptest.NewRecorder()
				if router.ServeHTTP(w, r); w.Code != 404 && w.Code != 405 {
					t.Fatal(w.Code)
				}
			}
			return time.Since(begun)
		}
		if d := took("198.51.100.1", 500); d > 0 {
			t.Errorf("500 take %s", d)
		}
		if d := took("198.51.100.1", 200); d < time.Second {
			t.Errorf("200 more take %s, want about 2 s", d)
		}
		if d := took("198.51.100.2", 100); d > 0 {
			t.Errorf("those of another client of the proxy take %s", d)
		}
	})
}

// A change has half a minute, also where its database hangs.
func TestChangesAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		router := chi.NewRouter()
		limited := router.With(httpapi.LimitChanges)
		wait := httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error {
			select {
			case <-r.Context().Done():
				return r.Context().Err()
			case <-time.After(time.Minute):
				return nil
			}
		})
		limited.Get("/", wait)
		limited.Post("/", wait)
		for method, want := range map[string]int{"GET": http.StatusOK, "POST": http.StatusInternalServerError} {
			w, begun := httptest.NewRecorder(), time.Now()
			router.ServeHTTP(w, httptest.NewRequest(method, "/", nil))
			if took := time.Since(begun); w.Code != want || (method == "POST") != (took == 30*time.Second) {
				t.Errorf("%s after %s: %d %s", method, took, w.Code, w.Body)
			}
		}
	})
}

// Only a request with a sampled trace is an exemplar of the duration.
func TestExemplars(t *testing.T) {
	for ratio, want := range map[float64]int{0: 0, 1: 1} {
		registry, collector := telemetry.New(), tracingtest.New(t)
		tracer, err := otlp.Config{Endpoint: collector.URL, Ratio: ratio}.Open("ledger", nil, testenv.Logger(t))
		testenv.Must(t, err)
		router := httpapi.NewRouter(httpapi.Options{
			Logger: testenv.Logger(t), Clock: time.Now, Tracer: tracer, Observe: httpapi.NewMetrics(registry.For("ledger")).Observe,
		})
		router.Get("/", func(http.ResponseWriter, *http.Request) {})
		router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
		tracer.Close()
		shown, spans := tracingtest.Exemplars(registry.Handler(), "weir_http_request_duration_seconds"), collector.Spans()
		if len(shown) != want || len(spans) != want || want == 1 && shown[0] != spans[0].Trace {
			t.Errorf("sampled by %v: exemplars %q of %+v", ratio, shown, spans)
		}
	}
}

// A request whose client has gone is no failure of ours.
func TestClientHasGone(t *testing.T) {
	var status int
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now,
		Observe: func(_ context.Context, _, _ string, answered int, _ time.Duration) { status = answered }})
	router.Get("/slow", httpapi.Handle(func(_ http.ResponseWriter, r *http.Request) error {
		return r.Context().Err()
	}))
	ctx, leave := context.WithCancel(t.Context())
	leave()
	router.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/slow", nil))
	if status != 499 {
		t.Errorf("observed as %d", status)
	}
}

// Requests are counted by route, method and class of status; client
// input is never a label.
func TestMetrics(t *testing.T) {
	registry := telemetry.New()
	metrics := httpapi.NewMetrics(registry.For("ledger"))
	router := httpapi.NewRouter(httpapi.Options{Logger: testenv.Logger(t), Clock: time.Now, Observe: metrics.Observe})
	router.Get("/v1/things/{thing}", func(http.ResponseWriter, *http.Request) {})
	router.Post("/v1/things", httpapi.Handle(func(http.ResponseWriter, *http.Request) error { panic("broken") }))
	for _, request := range []*http.Request{
		httptest.NewRequest(http.MethodGet, "/v1/things/org_secret", nil),
		httptest.NewRequest(http.MethodPost, "/v1/things", nil),
		httptest.NewRequest(http.MethodGet, "/v1/made-up", nil),
		httptest.NewRequest("MADEUP", "/v1/things/org_secret", nil),
	} {
		router.ServeHTTP(httptest.NewRecorder(), request)
	}
	shown := httptest.NewRecorder()
	registry.Handler().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, labels := range []string{
		`method="GET",route="/v1/things/{thing}",service="ledger",status="2xx"`,
		`method="POST",route="/v1/things",service="ledger",status="5xx"`,
		`method="GET",route="",service="ledger",status="4xx"`,
		`method="other",route="",service="ledger",status="4xx"`,
	} {
		if line := "weir_http_request_duration_seconds_count{" + labels + "} 1\n"; !strings.Contains(shown.Body.String(), line) {
			t.Errorf("%q is missing in\n%s", line, shown.Body)
		}
	}
	for _, secret := range []string{"org_secret", "made-up", "MADEUP"} {
		if strings.Contains(shown.Body.String(), secret) {
			t.Errorf("the metrics show %q", secret)
		}
	}
}

// A User-Agent is cut to whole characters, and can't harm a terminal
// or a database.
func TestClipClient(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "curl/8.5.0": "curl/8.5.0", "a\x00b\x1b[31mc\u0085": "ab[31mc", "a\xffb": "ab",
		"curl weir_" + strings.Repeat("ab", 24):                                   httpapi.Redact("curl weir_" + strings.Repeat("ab", 24)),
		"curl weir_" + strings.Repeat("ab", 12) + "\t" + strings.Repeat("ab", 12): httpapi.Redact("curl weir_" + strings.Repeat("ab", 24)),
		strings.Repeat("x", 300):                                                  strings.Repeat("x", 200), "x" + strings.Repeat("ä", 300): "x" + strings.Repeat("ä", 99),
	} {
		if got := httpapi.ClipUserAgent(text, 200); got != want || !utf8.ValidString(got) {
			t.Errorf("ClipUserAgent(%q) = %q, want %q", text, got, want)
		}
	}
}
