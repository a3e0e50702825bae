package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/tracing"
	"github.com/weirlog/weir/shared/tracing/otlp"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

// module is a fake module: it answers with its name, what it received,
// and its part of the OpenAPI document.
func module(name gateway.Module) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Module", string(name))
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s for=%q", r.Method, r.URL.RequestURI(), body, r.Header.Get("X-Forwarded-For"))
	})
	mux.HandleFunc("GET /v1/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"openapi":"3.1.0","paths":{"/v1/%s":{"get":{}}},"components":{"schemas":{"Problem":{"type": "object"}}}}`, name)
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"status":"ready"}`) })
	return mux
}

func local(t *testing.T, notReady error) *gateway.Gateway {
	t.Helper()
	backends := map[gateway.Module]gateway.Backend{}
	for _, name := range gateway.Modules() {
		backends[name] = gateway.Local(module(name), func() error { return notReady }, func() []httpapi.Backlog { return nil })
	}
	return newGateway(t, backends)
}

func newGateway(t *testing.T, backends map[gateway.Module]gateway.Backend) *gateway.Gateway {
	t.Helper()
	g, err := gateway.New(backends, nil, slog.New(slog.DiscardHandler), time.Now)
	testenv.Must(t, err)
	return g
}

func get(g http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(method, path, strings.NewReader("body"))
	r.Header.Set("X-Forwarded-For", "203.0.113.9")
	g.ServeHTTP(w, r)
	return w
}

// A request reaches the owner of its path unchanged; an unowned path is
// a problem+json 404.
func TestGatewayRoutes(t *testing.T) {
	g := local(t, nil)
	if w := get(g, "POST", "/v1/logs?x=1"); w.Header().Get("X-Module") != "ingest" || !strings.HasPrefix(w.Body.String(), "POST /v1/logs?x=1 body") {
		t.Errorf("POST /v1/logs: %s %q", w.Header().Get("X-Module"), w.Body)
	}
	for path, want := range map[string]string{"/logs": "ingest", "/v1/log": "ingest", "/otlp/v1/logs": "ingest", "/api/v1/Projects/": "tenants", "/docs": "", "/readyz": "",
		"/v1/error-groups/grp_1/occurrences": ""} {
		if got := get(g, "GET", path).Header().Get("X-Module"); got != want {
			t.Errorf("%s is answered by %q, want %q", path, got, want)
		}
	}
	w := get(g, "GET", "/v1/nothing")
	var problem struct {
		Code      string `json:"code"`
		RequestID string `json:"request_id"`
	}
	testenv.Must(t, json.Unmarshal(w.Body.Bytes(), &problem))
	if w.Code != http.StatusNotFound || problem.Code != "not_found" || problem.RequestID == "" || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("GET /v1/nothing: %d %+v %v", w.Code, problem, w.Header())
	}
}

// The bare address leads to the console.
func TestGatewayRoot(t *testing.T) {
	if w := get(local(t, nil), "GET", "/"); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/console" {
		t.Errorf("GET /: %d %v", w.Code, w.Header())
	}
}

// The gateway is ready once every module is, and names those that are not.
func TestGatewayReady(t *testing.T) {
	if w := get(local(t, nil), "GET", "/readyz"); w.Code != http.StatusOK {
		t.Errorf("all ready: %d %s", w.Code, w.Body)
	}
	w := get(local(t, errors.New("dial tcp 10.1.2.3:5432: connection refused")), "GET", "/readyz")
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "ingest, ledger, grouping, tenants") {
		t.Errorf("none ready: %d %s", w.Code, w.Body)
	}
	if strings.Contains(w.Body.String(), "10.1.2.3") {
		t.Errorf("anybody is told why: %s", w.Body)
	}
}

// The gateway says what its modules catch up with, here and elsewhere.
func TestGatewayShowsWhatCatchesUp(t *testing.T) {
	behind := httpapi.Backlog{Part: "the log store", Done: 0.5, SecondsLeft: 3}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		httpapi.WriteJSON(w, http.StatusOK, httpapi.ReadyAnswer{Status: "catching_up", Behind: []httpapi.Backlog{behind}})
	})
	server := httptest.NewTLSServer(mux)
	defer server.Close()
	backends := remotes(t, server, "", nil)
	backends[gateway.Ledger] = gateway.Local(mux, func() error { return nil }, func() []httpapi.Backlog { return []httpapi.Backlog{behind} })
	backends[gateway.Tenants] = gateway.Local(mux, func() error { return nil }, func() []httpapi.Backlog { return nil })
	w := get(newGateway(t, backends), "GET", "/readyz")
	var said httpapi.ReadyAnswer
	testenv.Must(t, json.Unmarshal(w.Body.Bytes(), &said))
	var parts []string
	for _, one := range said.Behind {
		parts = append(parts, one.Part)
	}
	if w.Code != http.StatusOK || said.Status != "catching_up" || !slices.Equal(parts, []string{"ingest: the log store", "ledger: the log store", "grouping: the log store"}) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// The gateway's OpenAPI document has every module's paths and its own, and
// common parts once.
func TestGatewayJoinsOpenAPI(t *testing.T) {
	var whole struct {
		Paths      map[string]any
		Components struct{ Schemas map[string]any }
		Tags       []any
	}
	w := get(local(t, nil), "GET", "/v1/openapi.json")
	testenv.Must(t, json.Unmarshal(w.Body.Bytes(), &whole))
	own := 0
	for name := range whole.Components.Schemas {
		if strings.HasPrefix(name, "Gateway") {
			own++
		}
	}
	if len(whole.Paths) != len(gateway.Modules())+1 || len(whole.Components.Schemas) != own+1 || own == 0 || len(whole.Tags) != 0 {
		t.Errorf("joined: %+v", whole)
	}
}

// People get the same as a page.
func TestGatewayShowsOpenAPI(t *testing.T) {
	w := get(local(t, nil), "GET", "/docs")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "GET /v1/ledger") || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

// Generators that can't read OpenAPI 3.1 get the same as 3.0.
func TestGatewayServesOpenAPI30(t *testing.T) {
	w := get(local(t, nil), "GET", "/v1/openapi-3.0.json")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"openapi":"3.0.3"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Endless requests for the OpenAPI document are refused in the end.
func TestDocumentIsLimited(t *testing.T) {
	g := local(t, nil)
	for range 1000 {
		if get(g, "GET", "/v1/openapi.json").Code == http.StatusTooManyRequests {
			return
		}
	}
	t.Error("a thousand requests at once are answered")
}

// A remote module gets the whole request over HTTPS, with the
// client's true address.
func TestRemoteModule(t *testing.T) {
	server := httptest.NewTLSServer(module(gateway.Ingest))
	defer server.Close()
	for trusted, want := range map[string]string{"": `for="192.0.2.1"`, "192.0.2.0/24": `for="203.0.113.9, 192.0.2.1"`} {
		w := get(newGateway(t, remotes(t, server, trusted, nil)), "POST", "/v1/logs?x=%2F")
		if !strings.HasPrefix(w.Body.String(), "POST /v1/logs?x=%2F body") || !strings.HasSuffix(w.Body.String(), want) {
			t.Errorf("trusting %q: %s, want %s", trusted, w.Body, want)
		}
	}
	for _, query := range []string{"project=a;level=error", "q=%zz"} {
		if w := get(newGateway(t, remotes(t, server, "", nil)), "GET", "/v1/logs?"+query); !strings.HasPrefix(w.Body.String(), "GET /v1/logs?"+query+" ") {
			t.Errorf("a query that can't be read, which the module refuses: %s", w.Body)
		}
	}
	if w := get(newGateway(t, remotes(t, server, "", nil)), "GET", "/readyz"); w.Code != http.StatusOK {
		t.Errorf("readyz: %d %s", w.Code, w.Body)
	}
}

// An unreachable module is a 500 unavailable with a time to retry, and
// makes the gateway unready.
func TestRemoteModuleGone(t *testing.T) {
	server := httptest.NewTLSServer(module(gateway.Ingest))
	metrics := prometheus.NewRegistry()
	g := newGateway(t, remotes(t, server, "", metrics))
	server.Close()
	w := get(g, "POST", "/v1/logs")
	if w.Code != http.StatusInternalServerError || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"code":"unavailable"`) {
		t.Errorf("gone: %d %v %s", w.Code, w.Header(), w.Body)
	}
	if err := testutil.GatherAndCompare(metrics, strings.NewReader(`
# HELP weir_gateway_unreached_requests_total Requests that were answered 500 because their module was not reached, or ended before it answered.
# TYPE weir_gateway_unreached_requests_total counter
weir_gateway_unreached_requests_total{module="grouping"} 0
weir_gateway_unreached_requests_total{module="ingest"} 1
weir_gateway_unreached_requests_total{module="ledger"} 0
weir_gateway_unreached_requests_total{module="tenants"} 0
`)); err != nil {
		t.Error(err)
	}
	if w := get(g, "GET", "/readyz"); w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "127.0.0.1") {
		t.Errorf("readyz: %d %s", w.Code, w.Body)
	}
}

func remotes(t *testing.T, server *httptest.Server, trusted string, metrics prometheus.Registerer) map[gateway.Module]gateway.Backend {
	t.Helper()
	target, err := url.Parse(server.URL)
	testenv.Must(t, err)
	authorities, err := gateway.LoadAuthorities(authorityOf(t, server), slog.New(slog.DiscardHandler))
	testenv.Must(t, err)
	remote := gateway.Remote{Target: target, Transport: gateway.NewTransport(authorities, target.Hostname()), Logger: slog.New(slog.DiscardHandler), Clock: time.Now}
	if trusted != "" {
		remote.Trusted = []netip.Prefix{netip.MustParsePrefix(trusted)}
	}
	backends, unreached := map[gateway.Module]gateway.Backend{}, gateway.NewUnreached(metrics)
	for _, name := range gateway.Modules() {
		remote.Unreached = unreached.WithLabelValues(string(name))
		backends[name] = remote.Backend()
	}
	return backends
}

const (
	clientTrace = "0af7651916cd43dd8448eb211c80319c"
	clientSpan  = "b7ad6b7169203331"
)

// A request has one trace from the gateway through a module that trusts
// it, and clients do not decide about its sampling.
func TestTraceGoesOn(t *testing.T) {
	for _, c := range []struct {
		name  string
		ratio float64 // of the gateway; the module's own is the opposite
		spans int
	}{{"sampled", 1, 2}, {"not sampled", 0, 0}} {
		t.Run(c.name, func(t *testing.T) {
			collector := tracingtest.New(t)
			before, behind := tracer(t, collector, "gateway", c.ratio), tracer(t, collector, "ingest", 1-c.ratio)
			w := httptest.NewRecorder()
			throughGateway(t, before, behind).ServeHTTP(w, fromClient())
			before.Close()
			behind.Close()
			spans := collector.Spans()
			if w.Code != http.StatusOK || len(spans) != c.spans {
				t.Fatalf("%d, and spans %+v", w.Code, spans)
			}
			if c.spans > 0 {
				isOneTrace(t, spans)
			}
		})
	}
}

// isOneTrace checks that the module's span is below the gateway's, and
// the client's beside it.
func isOneTrace(t *testing.T, spans []tracingtest.Span) {
	t.Helper()
	at := slices.IndexFunc(spans, func(s tracingtest.Span) bool { return s.Service == "weir-gateway" })
	if at < 0 {
		t.Fatalf("no span of the gateway: %+v", spans)
	}
	first, second := spans[at], spans[1-at]
	if second.Trace != first.Trace || second.Parent != first.ID || second.Name != "POST /v1/logs" {
		t.Errorf("%+v is not below %+v", second, first)
	}
	if first.Trace == clientTrace || first.Parent != "" || !slices.Equal(first.Links, []string{clientSpan}) {
		t.Errorf("the client's trace is continued, or not linked: %+v", first)
	}
}

func tracer(t *testing.T, collector *tracingtest.Collector, service string, ratio float64) *tracing.Tracer {
	t.Helper()
	tracer, err := otlp.Config{Endpoint: collector.URL, Ratio: ratio, FromProxies: service != "gateway"}.Open(service, nil, slog.New(slog.DiscardHandler))
	testenv.Must(t, err)
	t.Cleanup(tracer.Close)
	return tracer
}

// throughGateway returns a gateway before a module, both with tracing.
func throughGateway(t *testing.T, before, behind *tracing.Tracer) http.Handler {
	t.Helper()
	router := httpapi.NewRouter(httpapi.Options{
		Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Tracer: behind, Proxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
	})
	router.Post("/v1/logs", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewTLSServer(router)
	t.Cleanup(server.Close)
	target, err := url.Parse(server.URL)
	testenv.Must(t, err)
	remote := gateway.Remote{Target: target, Transport: server.Client().Transport, Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Tracer: before}
	return remote.Backend().Handler
}

func fromClient() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/logs", nil)
	r.Header.Set("Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
	return r
}

// streaming has ingest send events until its client has gone.
func streaming(t *testing.T) http.Handler {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", httpapi.TypeEvents)
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "data: x\n\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(50 * time.Millisecond)
		}
	}))
	t.Cleanup(server.Close)
	return newGateway(t, remotes(t, server, "", nil))
}

// Events pass as they come, and last longer than other answers may.
func TestEventsLast(t *testing.T) {
	front := httptest.NewUnstartedServer(streaming(t))
	front.Config.ReadTimeout, front.Config.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
	front.Start()
	defer front.Close()
	response, err := http.Get(front.URL + "/v1/logs/tail")
	testenv.Must(t, err)
	defer response.Body.Close()
	event := make([]byte, len("data: x\n\n"))
	for i := range 10 {
		if _, err := io.ReadFull(response.Body, event); err != nil {
			t.Fatalf("after %d events: %v", i, err)
		}
	}
}

// Events end when the gateway stops, which does not wait for them.
func TestEventsEndWithTheGateway(t *testing.T) {
	lender := httptest.NewTLSServer(nil) // lends its certificate
	defer lender.Close()
	listener, err := httpapi.Listen("127.0.0.1:0")
	testenv.Must(t, err)
	server := httpapi.Server{Handler: streaming(t), TLS: lender.TLS, Clock: time.Now, Logger: slog.New(slog.DiscardHandler), Drain: time.Hour}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, listener) }()
	response, err := lender.Client().Get("https://" + listener.Addr().String() + "/v1/logs/tail")
	testenv.Must(t, err)
	defer response.Body.Close()
	stop()
	if _, err := io.Copy(io.Discard, response.Body); err == nil {
		t.Error("what is cut looks whole")
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
