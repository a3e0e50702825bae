package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
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

// none is no span, created once so that it costs nothing.
var none = trace.SpanFromContext(context.Background())

// Start begins a span below the one of ctx. Without that there is none.
func Start(ctx context.Context, name string) (context.Context, trace.Span) {
	return start(ctx, name, trace.SpanKindInternal)
}

func start(ctx context.Context, name string, kind trace.SpanKind) (context.Context, trace.Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, none
	}
	return parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithSpanKind(kind))
}

const scope = "github.com/weirlog/weir/shared/tracing"

// Publish begins the span from sending messages to the brokers'
// acknowledgement.
func Publish(ctx context.Context, topic string, messages int) (context.Context, trace.Span) {
	ctx, span := start(ctx, "publish", trace.SpanKindProducer)
	if span.IsRecording() {
		span.SetName("publish " + topic)
		span.SetAttributes(attribute.String("messaging.system", "kafka"), attribute.String("messaging.operation.type", "send"),
			attribute.String("messaging.destination.name", topic), attribute.Int("messaging.batch.message_count", messages))
	}
	return ctx, span
}

// End ends a span. It records only the kind of an error: its text may
// hold what a client sent.
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("error.type", kindOf(err)))
	}
	span.End()
}

func kindOf(err error) string {
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused):
		return refused.Code
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	return "_OTHER"
}

// StatusKey is the attribute of an answer's status.
const StatusKey = attribute.Key("http.response.status_code")

// Answered names the span of ctx's request by its route's pattern and
// its outcome. route is "" without one.
func Answered(ctx context.Context, method, route string, status int) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	span.SetName(method)
	span.SetAttributes(attribute.String("http.request.method", method), StatusKey.Int(status))
	if route != "" {
		span.SetName(method + " " + route)
		span.SetAttributes(attribute.String("http.route", route))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// SetOrganization records the organization of ctx's request; "": unknown.
func SetOrganization(ctx context.Context, id string) {
	if span := trace.SpanFromContext(ctx); id != "" && span.IsRecording() {
		span.SetAttributes(attribute.String("weir.organization", id))
	}
}

// Traceparent returns what a record carries of ctx's request: its span
// if it is sampled. Without tracing it is what the client sent.
func Traceparent(ctx context.Context, sent string) string {
	span := trace.SpanContextFromContext(ctx)
	switch {
	case !span.IsValid():
		return sent
	case !span.IsSampled():
		return ""
	}
	return "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-01"
}

// Propagate passes ctx's trace on with a forwarded request. Without
// tracing it keeps what the client sent.
func Propagate(ctx context.Context, header http.Header) {
	if trace.SpanContextFromContext(ctx).IsValid() {
		header.Del("Tracestate") // of the client's trace, not of this one
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(header))
	}
}

// Logger returns logger with the id of ctx's trace, if there is one.
func Logger(ctx context.Context, logger *slog.Logger) *slog.Logger {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		return logger.With(slog.String("trace_id", span.TraceID().String()))
	}
	return logger
}

// Queries makes a span of each statement below a span, commits included.
// It has the statement's first word: neither text nor arguments.
type Queries struct{}

var (
	_ pgx.QueryTracer    = Queries{}
	_ pgx.BatchTracer    = Queries{}
	_ pgx.CopyFromTracer = Queries{}
)

// TraceQueryStart begins a statement.
func (Queries) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return startStatement(ctx, data.SQL)
}

// TraceQueryEnd ends it.
func (Queries) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	endStatement(ctx, data.CommandTag, data.Err)
}

// TraceBatchStart begins one span for statements sent together.
func (Queries) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	return startStatement(ctx, "batch")
}

// TraceBatchQuery is for pgx.
func (Queries) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd ends them.
func (Queries) TraceBatchEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchEndData) {
	endStatement(ctx, pgconn.CommandTag{}, data.Err)
}

// TraceCopyFromStart begins a COPY.
func (Queries) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	return startStatement(ctx, "copy")
}

// TraceCopyFromEnd ends it.
func (Queries) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	endStatement(ctx, data.CommandTag, data.Err)
}

// startStatement always leaves a span in ctx that endStatement may end:
// its own, or one that does not record.
func startStatement(ctx context.Context, sql string) context.Context {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx
	}
	operation := operationOf(sql)
	ctx, span := start(ctx, "postgres "+operation, trace.SpanKindClient)
	span.SetAttributes(attribute.String("db.system.name", "postgresql"), attribute.String("db.operation.name", operation))
	return ctx
}

func endStatement(ctx context.Context, tag pgconn.CommandTag, err error) {
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(attribute.Int64("weir.rows", tag.RowsAffected()))
	}
	End(span, err)
}

// operations are known first words of statements; any other is named
// "query", as it might be anything.
var operations = map[string]bool{
	"begin": true, "commit": true, "rollback": true, "savepoint": true, "release": true, "set": true, "lock": true, "with": true,
	"select": true, "insert": true, "update": true, "delete": true, "merge": true, "copy": true, "batch": true,
}

func operationOf(sql string) string {
	words := strings.Fields(sql[:min(len(sql), 64)])
	if len(words) == 0 {
		return "query"
	}
	if word := strings.ToLower(strings.Trim(words[0], "();")); operations[word] {
		return word
	}
	return "query"
}

// Observe measures value, in the unit of observer. If ctx has a sampled
// span, its trace id is added as an exemplar.
func Observe(ctx context.Context, observer prometheus.Observer, value float64) {
	span := trace.SpanContextFromContext(ctx)
	if with, can := observer.(prometheus.ExemplarObserver); can && span.IsSampled() {
		with.ObserveWithExemplar(value, prometheus.Labels{"trace_id": span.TraceID().String()})
		return
	}
	observer.Observe(value)
}
