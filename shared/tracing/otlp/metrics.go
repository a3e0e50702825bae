package otlp

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

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
