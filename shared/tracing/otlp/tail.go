package otlp

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/fairshare"
	"github.com/weirlog/weir/shared/tracing"
)

// Limits of spans held for unsampled running requests, about 16 MB. A
// request ends by its own limits, and with it its held spans.
const (
	maxHeld      = 1024 // requests
	maxHeldSpans = 16   // of each
)

// slow is the duration from which on a request is kept.
const slow = time.Second

// Clients can be slow, and make requests fail: so many kept requests
// are allowed a second, and a hundred at once.
const (
	keptPerSecond = 20
	keptBurst     = 100
)

// A tail passes on sampled spans, and decides about every other request
// at its end: one that failed by our fault, or was slow, is kept.
type tail struct {
	queue *queue
	slow  time.Duration

	mu   sync.Mutex
	held map[trace.SpanID]*held // by requests' spans; bounded by maxHeld
	of   map[trace.SpanID]*held // by their child spans; bounded by maxHeldSpans of each
	kept fairshare.Bucket
}

// held is a request's held spans. Its trace may have others: a client
// can give many requests the same one.
type held struct {
	begun []trace.SpanID // bounded by maxHeldSpans
	spans []sdktrace.ReadOnlySpan
}

func newTail(queue *queue) *tail {
	return &tail{queue: queue, slow: slow, held: map[trace.SpanID]*held{}, of: map[trace.SpanID]*held{}}
}

// OnStart makes room for a request, or for a span below one.
func (t *tail) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	if span.SpanContext().IsSampled() {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if id := span.SpanContext().SpanID(); !isRequest(span) {
		t.begin(id, span.Parent().SpanID())
	} else if len(t.held) < maxHeld {
		t.held[id] = &held{}
	}
}

// begin notes the request of a span. The caller holds the lock.
func (t *tail) begin(id, parent trace.SpanID) {
	request := cmp.Or(t.held[parent], t.of[parent])
	if request == nil || len(request.begun) == maxHeldSpans {
		return
	}
	request.begun = append(request.begun, id)
	t.of[id] = request
}

// isRequest reports whether a span is the first of its trace in this process.
func isRequest(span sdktrace.ReadOnlySpan) bool {
	return !span.Parent().IsValid() || span.Parent().IsRemote()
}

// OnEnd never waits.
func (t *tail) OnEnd(span sdktrace.ReadOnlySpan) {
	switch {
	case span.SpanContext().IsSampled():
		t.queue.add(span)
	case !isRequest(span):
		t.hold(span)
	default:
		t.settle(span)
	}
}

func (t *tail) hold(span sdktrace.ReadOnlySpan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	request := t.of[span.SpanContext().SpanID()]
	if request == nil {
		t.queue.counted.notHeld.Inc()
		return
	}
	request.spans = append(request.spans, span)
}

// release returns a request's held spans, and drops them. The caller
// holds the lock.
func (t *tail) release(id trace.SpanID) []sdktrace.ReadOnlySpan {
	request := t.held[id]
	if request == nil {
		return nil
	}
	for _, below := range request.begun {
		delete(t.of, below)
	}
	delete(t.held, id)
	return request.spans
}

// settle decides about an ended request.
func (t *tail) settle(request sdktrace.ReadOnlySpan) {
	t.mu.Lock()
	spans := t.release(request.SpanContext().SpanID())
	worth := t.isWorth(request)
	keep := worth && t.kept.Allow(request.EndTime(), fairshare.Rate{Burst: keptBurst, PerSecond: keptPerSecond})
	t.mu.Unlock()
	if keep {
		t.queue.add(append(spans, request)...)
	} else if worth {
		t.queue.counted.tooMany.Add(float64(1 + len(spans)))
	}
}

// isWorth reports whether a request failed by our fault or was slow; a
// refused one may only have waited for its pace.
func (t *tail) isWorth(request sdktrace.ReadOnlySpan) bool {
	return request.Status().Code == codes.Error || request.EndTime().Sub(request.StartTime()) >= t.slow && !isRefused(request)
}

func isRefused(request sdktrace.ReadOnlySpan) bool {
	for _, a := range request.Attributes() {
		if a.Key == tracing.StatusKey {
			return a.Value.AsInt64()/100 == 4
		}
	}
	return false
}

// Shutdown ends the export of queued spans.
func (t *tail) Shutdown(context.Context) error { return t.queue.close() }

// ForceFlush is required by OpenTelemetry; Weir never calls it.
func (t *tail) ForceFlush(context.Context) error { return nil }

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

// counts are the outcomes of spans.
type counts struct {
	exported, queueFull, notTaken, notHeld, tooMany prometheus.Counter
}

func newCounts(registerer prometheus.Registerer) counts {
	metrics := promauto.With(registerer)
	dropped := metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_tracing_dropped_spans_total",
		Help: "Spans dropped: queue (it was full), collector (it did not take them), held (too many not sampled), rate (too many slow or failed).",
	}, []string{"reason"})
	return counts{
		exported: metrics.NewCounter(prometheus.CounterOpts{
			Name: "weir_tracing_exported_spans_total", Help: "Spans that the collector has taken.",
		}),
		queueFull: dropped.WithLabelValues("queue"), notTaken: dropped.WithLabelValues("collector"), notHeld: dropped.WithLabelValues("held"),
		tooMany: dropped.WithLabelValues("rate"),
	}
}
