package tracing

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/fairshare"
)

// MaxLinks limits the requests that a transaction is linked to.
const MaxLinks = 32

// A Tracer begins the traces of a service. nil begins none.
type Tracer struct {
	tracer   trace.Tracer
	shutdown func()

	continues bool // the traces of trusted proxies
	mu        sync.Mutex
	followed  fairshare.Bucket // of their sampled traces
	clock     func() time.Time
}

// A proxy may pass on what clients send: so many of its sampled traces
// are followed a second, and so many at once.
const (
	followedPerSecond = 100
	followedBurst     = 500
)

// New returns a service's tracer on a provider that keeps unsampled
// spans until their request has ended. shutdown exports the rest;
// continues says whether the traces of trusted proxies are continued.
func New(service string, provider trace.TracerProvider, continues bool, shutdown func()) *Tracer {
	clock := time.Now //nolint:forbidigo // OpenTelemetry stamps spans by the machine's clock
	return &Tracer{tracer: provider.Tracer("github.com/weirlog/weir/" + service), shutdown: shutdown, continues: continues, clock: clock}
}

// Request begins the trace of an HTTP request. It links to the client's
// own trace and never continues it: sampling costs us, so we decide.
func (t *Tracer) Request(ctx context.Context, traceparent string) (context.Context, trace.Span) {
	if t == nil {
		return ctx, none
	}
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindServer)}
	if client := parse(traceparent); client.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: client}))
	}
	return t.tracer.Start(ctx, "request", options...)
}

// Proxied is Request for a trusted proxy, whose trace is continued if
// so configured: it decides about sampling, within limits.
func (t *Tracer) Proxied(ctx context.Context, traceparent string) (context.Context, trace.Span) {
	from := parse(traceparent)
	if t == nil || !t.continues || !from.IsValid() {
		return t.Request(ctx, traceparent)
	}
	if from.IsSampled() && !t.follows() {
		from = from.WithTraceFlags(from.TraceFlags().WithSampled(false))
	}
	return t.tracer.Start(trace.ContextWithRemoteSpanContext(ctx, from), "request", trace.WithSpanKind(trace.SpanKindServer))
}

func (t *Tracer) follows() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.followed.Allow(t.clock(), fairshare.Rate{Burst: followedBurst, PerSecond: followedPerSecond})
}

// Transaction begins the trace of a transaction that applies records of topic,
// if any of them is sampled: traceparents are theirs, at most MaxLinks.
func (t *Tracer) Transaction(ctx context.Context, group, topic string, records int, traceparents []string) (context.Context, trace.Span) {
	if t == nil || len(traceparents) == 0 {
		return ctx, none
	}
	links := make([]trace.Link, 0, len(traceparents))
	for _, text := range traceparents {
		if from := parse(text); from.IsSampled() {
			links = append(links, trace.Link{SpanContext: from})
		}
	}
	if len(links) == 0 {
		return ctx, none
	}
	return t.tracer.Start(ctx, "process "+topic, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithLinks(links...), trace.WithAttributes(
		attribute.String("messaging.system", "kafka"), attribute.String("messaging.operation.type", "process"),
		attribute.String("messaging.destination.name", topic), attribute.String("messaging.consumer.group.name", group),
		attribute.Int("messaging.batch.message_count", records),
	))
}

// Close exports the rest, within seconds. Spans that end later are lost.
func (t *Tracer) Close() {
	if t != nil {
		t.shutdown()
	}
}

// IsSampled reports whether a traceparent is of a sampled request.
func IsSampled(traceparent string) bool { return parse(traceparent).IsSampled() }

func parse(traceparent string) trace.SpanContext {
	if traceparent == "" {
		return trace.SpanContext{}
	}
	carrier := propagation.MapCarrier{"traceparent": traceparent}
	return trace.SpanContextFromContext(propagation.TraceContext{}.Extract(context.Background(), carrier))
}
