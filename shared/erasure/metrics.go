package erasure

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	removed       *prometheus.CounterVec
	open, overdue prometheus.Gauge
}

func newMetrics(registerer prometheus.Registerer) metrics {
	metric := promauto.With(registerer)
	return metrics{
		removed: metric.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_erased_total", Help: "Rows that were removed because their organization or project was deleted.",
		}, []string{"table"}),
		open: metric.NewGauge(prometheus.GaugeOpts{
			Name: "weir_erasures_open", Help: "Deleted organizations and projects that are not erased here yet.",
		}),
		overdue: metric.NewGauge(prometheus.GaugeOpts{
			Name: "weir_erasures_overdue", Help: "Deleted organizations and projects that should have been erased here by now.",
		}),
	}
}

func (m metrics) erased(table string, removed int64) {
	if removed > 0 {
		m.removed.WithLabelValues(table).Add(float64(removed))
	}
}
