package otlp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Limits of the export. OpenTelemetry's own batching has no readable
// count of what it drops.
const (
	maxQueued     = 2048
	batchSpans    = 512
	batchInterval = time.Second
	exportTimeout = 10 * time.Second
	closeTimeout  = 2 * time.Second
)

// A queue exports spans in batches in the background: what does not fit
// is dropped and counted.
type queue struct {
	exporter sdktrace.SpanExporter
	counted  counts
	logger   *slog.Logger
	spans    chan sdktrace.ReadOnlySpan
	failing  bool // the last export failed

	export context.Context // ends when waiting is over
	cancel context.CancelFunc
	once   sync.Once
	stop   chan struct{}
	ended  chan struct{}
}

func newQueue(exporter sdktrace.SpanExporter, counted counts, logger *slog.Logger) *queue {
	q := &queue{
		exporter: exporter, counted: counted, logger: logger, spans: make(chan sdktrace.ReadOnlySpan, maxQueued),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
	q.export, q.cancel = context.WithCancel(context.Background())
	go q.run()
	return q
}

func (q *queue) add(spans ...sdktrace.ReadOnlySpan) {
	for _, span := range spans {
		select {
		case q.spans <- span:
		default:
			q.counted.queueFull.Inc()
		}
	}
}

func (q *queue) run() {
	defer close(q.ended)
	tick := time.NewTicker(batchInterval)
	defer tick.Stop()
	batch := make([]sdktrace.ReadOnlySpan, 0, batchSpans)
	for {
		select {
		case span := <-q.spans:
			if batch = append(batch, span); len(batch) < batchSpans {
				continue
			}
		case <-tick.C:
		case <-q.stop:
			q.drain(batch)
			return
		}
		batch = q.send(batch)
	}
}

// drain exports the rest.
func (q *queue) drain(batch []sdktrace.ReadOnlySpan) {
	for {
		select {
		case span := <-q.spans:
			if batch = append(batch, span); len(batch) == batchSpans {
				batch = q.send(batch)
			}
		default:
			q.send(batch)
			return
		}
	}
}

// send exports a batch and returns it empty.
func (q *queue) send(batch []sdktrace.ReadOnlySpan) []sdktrace.ReadOnlySpan {
	if len(batch) == 0 {
		return batch
	}
	ctx, cancel := context.WithTimeout(q.export, exportTimeout)
	defer cancel()
	err := q.exporter.ExportSpans(ctx, batch)
	if err != nil {
		q.counted.notTaken.Add(float64(len(batch)))
	} else {
		q.counted.exported.Add(float64(len(batch)))
	}
	if err != nil && !q.failing { // once, until it works again
		q.logger.Warn("cannot export traces", slog.String("error", err.Error()))
	}
	q.failing = err != nil
	clear(batch)
	return batch[:0]
}

// close exports the rest, within closeTimeout.
func (q *queue) close() (err error) {
	q.once.Do(func() {
		close(q.stop)
		defer q.cancel()
		defer time.AfterFunc(closeTimeout, q.cancel).Stop()
		<-q.ended
		if err = q.exporter.Shutdown(q.export); err != nil {
			err = fmt.Errorf("cannot end the export of traces: %w", err)
		}
	})
	return err
}
