package gateway_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/gateway"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/tracing"
	"github.com/weirlog/weir/shared/tracing/otlp"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	remote := gateway.Remote{Target: target, Transport: server.Client().Transport, Logger: slog.New(slog.DiscardHandler), Clock: time.Now, Tracer: before}
	return remote.Backend().Handler
}

func fromClient() *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/logs", nil)
	r.Header.Set("Traceparent", "00-"+clientTrace+"-"+clientSpan+"-01")
	return r
}
