package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/tracing"
	"github.com/weirlog/weir/shared/tracing/tracingtest"
)

const sampledClient = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// open returns a tracer that exports to a collector.
func open(t *testing.T, config Config) (*tracing.Tracer, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewRegistry()
	tracer, err := config.Open("ingest", registry, testenv.Logger(t))
	testenv.Must(t, err)
	t.Cleanup(tracer.Close)
	return tracer, registry
}

// answer is a request with one statement in it.
func answer(tracer *tracing.Tracer, traceparent string, status int) context.Context {
	ctx, span := tracer.Request(context.Background(), traceparent)
	defer span.End()
	statement := tracing.Queries{}.TraceQueryStart(ctx, nil, pgx.TraceQueryStartData{SQL: "SELECT 'content'"})
	tracing.Queries{}.TraceQueryEnd(statement, nil, pgx.TraceQueryEndData{Err: errors.New("content")})
	tracing.Answered(ctx, http.MethodGet, "/v1/logs", status)
	return ctx
}

var neverSampled = sdktrace.NeverSample()

// tailed returns a tracer, and its tail for the test.
func tailed(t *testing.T, config Config, sampler sdktrace.Sampler) (*tail, *tracing.Tracer) {
	t.Helper()
	exporter, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpointURL(config.endpoint()))
	testenv.Must(t, err)
	tail := newTail(newQueue(exporter, newCounts(nil), testenv.Logger(t)))
	tracer := newTracer("ingest", newProvider(config.resource("ingest"), sampler, tail), config.FromProxies)
	t.Cleanup(tracer.Close)
	return tail, tracer
}

func names(spans []tracingtest.Span) (found []string) {
	for _, s := range spans {
		found = append(found, s.Name)
	}
	slices.Sort(found)
	return found
}

// Without an endpoint nothing is made or allocated.
func TestOff(t *testing.T) {
	for _, config := range []Config{{}, {Exporter: "none", Endpoint: "http://127.0.0.1:1"}} {
		tracer, err := config.Open("ingest", nil, testenv.Logger(t))
		if tracer != nil || err != nil {
			t.Errorf("%+v: %v, %v", config, tracer, err)
		}
	}
	var off *tracing.Tracer
	logger := testenv.Logger(t)
	allocated := testing.AllocsPerRun(100, func() {
		ctx, span := off.Request(t.Context(), sampledClient)
		_, child := tracing.Start(ctx, "authenticate")
		tracing.End(child, nil)
		tracing.SetOrganization(ctx, "org_1")
		_, publish := tracing.Publish(ctx, "weir.logs.v1", 1)
		tracing.End(publish, nil)
		tracing.Queries{}.TraceQueryEnd(tracing.Queries{}.TraceQueryStart(ctx, nil, pgx.TraceQueryStartData{SQL: "SELECT 1"}), nil, pgx.TraceQueryEndData{})
		_, transaction := off.Transaction(ctx, "ledger", "weir.logs.v1", 1, nil)
		tracing.End(transaction, nil)
		tracing.Answered(ctx, http.MethodPost, "/v1/logs", http.StatusOK)
		tracing.Logger(ctx, logger)
		if tracing.Traceparent(ctx, sampledClient) != sampledClient {
			t.Error("the client's traceparent is lost")
		}
		tracing.End(span, nil)
	})
	if allocated != 0 {
		t.Errorf("%v allocations without traces", allocated)
	}
	off.Close()
}

// A sampled request is exported, linked to its client's trace, and its
// record carries its span; no text of a statement or error is exported.
func TestSampled(t *testing.T) {
	collector := tracingtest.New(t)
	tracer, registry := open(t, Config{Endpoint: collector.URL, Ratio: 1})
	ctx := answer(tracer, sampledClient, http.StatusOK)
	tracer.Close()
	spans := collector.Spans()
	if got := names(spans); !slices.Equal(got, []string{"GET /v1/logs", "postgres select"}) {
		t.Fatalf("got %q", got)
	}
	statement, request := spans[0], spans[1]
	if statement.Parent != request.ID || !statement.Failed || request.Failed || request.Service != "weir-ingest" {
		t.Errorf("got %+v under %+v", statement, request)
	}
	if request.Parent != "" || request.Trace == sampledClient[3:35] || !slices.Equal(request.Links, []string{sampledClient[36:52]}) {
		t.Errorf("the client's trace is continued, or not linked: %+v", request)
	}
	if got, want := tracing.Traceparent(ctx, sampledClient), "00-"+request.Trace+"-"+request.ID+"-01"; got != want {
		t.Errorf("the record carries %q, want %q", got, want)
	}
	if strings.Contains(string(collector.Raw()), "content") {
		t.Error("a text of a statement or error was exported")
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(`
# HELP weir_tracing_exported_spans_total Spans that the collector has taken.
# TYPE weir_tracing_exported_spans_total counter
weir_tracing_exported_spans_total 2
`), "weir_tracing_exported_spans_total"); err != nil {
		t.Error(err)
	}
}

// Unsampled requests that fail or are slow are kept whole. Clients do
// not decide about sampling.
func TestTail(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		slow   time.Duration
		kept   int
	}{
		{"fine", http.StatusOK, time.Hour, 0},
		{"the client's fault", http.StatusBadRequest, time.Hour, 0},
		{"our fault", http.StatusInternalServerError, time.Hour, 2},
		{"slow", http.StatusOK, 0, 2},
		{"a refusal that was paced", http.StatusTooManyRequests, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector := tracingtest.New(t)
			config := Config{Endpoint: collector.URL}
			sampler, err := config.sampler()
			testenv.Must(t, err)
			tail, tracer := tailed(t, config, sampler)
			tail.slow = c.slow
			ctx := answer(tracer, sampledClient, c.status)
			if text := tracing.Traceparent(ctx, sampledClient); text != "" {
				t.Errorf("the record of what is not sampled carries %q", text)
			}
			tracer.Close()
			if got := names(collector.Spans()); len(got) != c.kept {
				t.Errorf("exported %q", got)
			}
			if len(tail.held) != 0 {
				t.Errorf("held after the end: %v", tail.held)
			}
		})
	}
}

// A trusted proxy's trace is continued if so configured, and an
// unsampled request of it is kept whole if it fails here.
func TestProxied(t *testing.T) {
	notSampled := sampledClient[:53] + "00"
	for _, c := range []struct {
		name        string
		continues   bool
		traceparent string
		parent      string
		kept        int
	}{
		{"linked", false, sampledClient, "", 0},
		{"sampled", true, sampledClient, sampledClient[36:52], 1},
		{"not sampled, and fails", true, notSampled, notSampled[36:52], 1},
		{"without a trace", true, "", "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			collector := tracingtest.New(t)
			tail, tracer := tailed(t, Config{Endpoint: collector.URL, FromProxies: c.continues}, sampler{neverSampled})
			ctx, span := tracer.Proxied(t.Context(), c.traceparent)
			if c.kept > 0 && c.traceparent == notSampled {
				tracing.Answered(ctx, http.MethodGet, "/v1/logs", http.StatusInternalServerError)
			}
			span.End()
			tracer.Close()
			spans := collector.Spans()
			if len(spans) != c.kept || c.kept > 0 && (spans[0].Parent != c.parent || spans[0].Trace != sampledClient[3:35]) {
				t.Errorf("exported %+v", spans)
			}
			if len(tail.held) != 0 {
				t.Errorf("held after the end: %v", tail.held)
			}
		})
	}
}

// Concurrent requests of one trace each keep their own spans.
func TestSharedTrace(t *testing.T) {
	collector := tracingtest.New(t)
	tail, tracer := tailed(t, Config{Endpoint: collector.URL, FromProxies: true}, sampler{neverSampled})
	notSampled := sampledClient[:53] + "00"
	fails, request := tracer.Proxied(t.Context(), notSampled)
	within, outer := tracing.Start(fails, "authenticate")
	_, inner := tracing.Start(within, "postgres select")
	inner.End()
	ctx, other := tracer.Proxied(t.Context(), notSampled)
	_, fine := tracing.Start(ctx, "search")
	fine.End()
	other.End()
	outer.End()
	tracing.Answered(fails, http.MethodGet, "/v1/logs", http.StatusInternalServerError)
	request.End()
	tracer.Close()
	if got := names(collector.Spans()); !slices.Equal(got, []string{"GET /v1/logs", "authenticate", "postgres select"}) {
		t.Errorf("exported %q", got)
	}
	if len(tail.held)+len(tail.of) != 0 {
		t.Errorf("held after the end: %v under %v", tail.of, tail.held)
	}
}

// Slow clients displace no sampled span: requests kept at their end are
// limited by rate, and the rest is counted.
func TestKeptIsBounded(t *testing.T) {
	collector := tracingtest.New(t)
	tail, tracer := tailed(t, Config{Endpoint: collector.URL}, sampler{neverSampled})
	tail.slow = 0
	begun := time.Now()
	for range 5 * keptBurst {
		answer(tracer, "", http.StatusOK)
	}
	tracer.Close()
	const spans = 2 // of each
	if got, most := len(collector.Spans()), spans*int(keptBurst+1+keptPerSecond*time.Since(begun).Seconds()); got < spans*keptBurst || got > most {
		t.Errorf("exported %d spans, want %d to %d", got, spans*keptBurst, most)
	}
	if got := testutil.ToFloat64(tail.queue.counted.tooMany); int(got)+len(collector.Spans()) != 5*spans*keptBurst {
		t.Errorf("counted %v", got)
	}
}

// Held spans are bounded, in requests and in spans of each, and the
// rest is counted.
func TestHeldIsBounded(t *testing.T) {
	collector := tracingtest.New(t)
	tail, tracer := tailed(t, Config{Endpoint: collector.URL}, sampler{neverSampled})
	for range maxHeld + 10 {
		ctx, _ := tracer.Request(t.Context(), "") // never ends
		for range maxHeldSpans + 1 {
			_, span := tracing.Start(ctx, "authenticate")
			tracing.End(span, nil)
		}
	}
	spans := 0
	for _, held := range tail.held {
		spans += len(held.spans)
	}
	if len(tail.held) != maxHeld || spans != maxHeld*maxHeldSpans {
		t.Errorf("held %d spans of %d requests", spans, len(tail.held))
	}
	if got, want := testutil.ToFloat64(tail.queue.counted.notHeld), float64(maxHeld+10*(maxHeldSpans+1)); got != want {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// A hanging collector delays nobody: what does not fit is counted, and
// the end is soon.
func TestCollectorHangs(t *testing.T) {
	asked, release := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		select {
		case asked <- struct{}{}:
		default:
		}
		<-release
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(release) })
	tracer, registry := open(t, Config{Endpoint: server.URL, Ratio: 1})
	_, first := tracer.Request(t.Context(), "")
	first.End()
	<-asked // with only that span
	const more = 100
	for range maxQueued + more {
		_, span := tracer.Request(t.Context(), "")
		span.End()
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(fmt.Sprintf(`
# HELP weir_tracing_dropped_spans_total Spans dropped: queue (it was full), collector (it did not take them), held (too many not sampled), rate (too many slow or failed).
# TYPE weir_tracing_dropped_spans_total counter
weir_tracing_dropped_spans_total{reason="collector"} 0
weir_tracing_dropped_spans_total{reason="held"} 0
weir_tracing_dropped_spans_total{reason="queue"} %d
weir_tracing_dropped_spans_total{reason="rate"} 0
`, more)), "weir_tracing_dropped_spans_total"); err != nil {
		t.Error(err)
	}
	ended := make(chan struct{})
	go func() { tracer.Close(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Error("the end waits for the collector")
	}
}

// A transaction is linked to the sampled requests of its records;
// without any it is not traced.
func TestTransaction(t *testing.T) {
	collector := tracingtest.New(t)
	tracer, _ := open(t, Config{Endpoint: collector.URL})
	notSampled := sampledClient[:53] + "00"
	for _, parents := range [][]string{nil, {"nonsense"}, {notSampled}, {notSampled, sampledClient}} {
		_, span := tracer.Transaction(t.Context(), "ledger", "weir.logs.v1", 3, parents)
		tracing.End(span, nil)
	}
	tracer.Close()
	spans := collector.Spans()
	if len(spans) != 1 || spans[0].Name != "process weir.logs.v1" || !slices.Equal(spans[0].Links, []string{sampledClient[36:52]}) {
		t.Errorf("got %+v", spans)
	}
}

// A log line has the trace's id, even after the span has ended.
func TestLogged(t *testing.T) {
	tracer, _ := open(t, Config{Endpoint: "http://127.0.0.1:1"})
	ctx, span := tracer.Request(t.Context(), "")
	span.End()
	var log strings.Builder
	tracing.Logger(ctx, slog.New(slog.NewTextHandler(&log, nil))).Info("ended")
	if id := span.SpanContext().TraceID().String(); !strings.Contains(log.String(), "trace_id="+id) {
		t.Errorf("%q has not the id %s", log.String(), id)
	}
}

// An invalid setting is an error of one line that names the variable.
func TestConfigIsRefused(t *testing.T) {
	for variable, config := range map[string]Config{
		"OTEL_TRACES_EXPORTER":        {Endpoint: "http://127.0.0.1:1", Exporter: "console"},
		"OTEL_EXPORTER_OTLP_PROTOCOL": {Endpoint: "http://127.0.0.1:1", Protocol: "grpc"},
		"OTEL_EXPORTER_OTLP_ENDPOINT": {Endpoint: "collector:4318"},
		"OTEL_TRACES_SAMPLER":         {Endpoint: "http://127.0.0.1:1", Sampler: "jaeger_remote"},
		"OTEL_TRACES_SAMPLER_ARG":     {Endpoint: "http://127.0.0.1:1", Ratio: 1.5},
	} {
		_, err := config.Open("ingest", nil, testenv.Logger(t))
		if err == nil || !strings.Contains(err.Error(), variable+" is ") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
