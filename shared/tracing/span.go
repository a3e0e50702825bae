package tracing

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5/pgconn"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

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
