package tracing

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

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
