package otlp

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Limits of the export.
const (
	maxQueued     = 2048
	batchSpans    = 512
	batchInterval = time.Second
	exportTimeout = 10 * time.Second
	closeTimeout  = 2 * time.Second
)

// A queue exports spans by OpenTelemetry's batches, in the background.
// These drop what does not fit, but count it where nobody can read it:
// the queue gives them no more than fits, and counts the rest.
type queue struct {
	sdktrace.SpanExporter
	batches sdktrace.SpanProcessor
	counted counts
	logger  *slog.Logger
	waiting atomic.Int64 // spans that wait for their export
	failing bool         // the last export failed
}

func newQueue(exporter sdktrace.SpanExporter, counted counts, logger *slog.Logger) *queue {
	q := &queue{SpanExporter: exporter, counted: counted, logger: logger}
	q.batches = sdktrace.NewBatchSpanProcessor(q, sdktrace.WithMaxQueueSize(maxQueued), sdktrace.WithMaxExportBatchSize(batchSpans),
		sdktrace.WithBatchTimeout(batchInterval), sdktrace.WithExportTimeout(exportTimeout))
	return q
}

// worthy is a span that is exported though its request was not sampled
// at its start.
type worthy struct{ sdktrace.ReadOnlySpan }

func (w worthy) SpanContext() trace.SpanContext {
	of := w.ReadOnlySpan.SpanContext()
	return of.WithTraceFlags(of.TraceFlags().WithSampled(true))
}

func (q *queue) add(spans ...sdktrace.ReadOnlySpan) {
	for _, span := range spans {
		if q.waiting.Add(1) > maxQueued {
			q.waiting.Add(-1)
			q.counted.queueFull.Inc()
			continue
		}
		q.batches.OnEnd(worthy{span})
	}
}

// ExportSpans reports no error to OpenTelemetry, which would print each.
func (q *queue) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	q.waiting.Add(-int64(len(spans)))
	err := q.SpanExporter.ExportSpans(ctx, spans)
	if err != nil {
		q.counted.notTaken.Add(float64(len(spans)))
	} else {
		q.counted.exported.Add(float64(len(spans)))
	}
	if err != nil && !q.failing { // once, until it works again
		q.logger.Warn("cannot export traces", slog.String("error", err.Error()))
	}
	q.failing = err != nil
	return nil
}

// close exports the rest, within closeTimeout.
func (q *queue) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	return q.batches.Shutdown(ctx)
}
