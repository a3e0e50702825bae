package prune

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics describe one table.
type metrics struct {
	removed prometheus.Counter
	oldest  atomic.Pointer[time.Time] // after the last run; nil before it and for an empty table
	clock   func() time.Time
}

func newMetrics(registerer prometheus.Registerer, table string, clock func() time.Time) *metrics {
	m := &metrics{clock: clock}
	labels := prometheus.Labels{"table": table}
	m.removed = promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_pruned_total", Help: "What was removed from a table beyond its bound: rows, or days of a partitioned table.", ConstLabels: labels,
	})
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_prune_oldest_age_seconds", Help: "Age of the oldest row that the last run left in a table; 0 if it left none.", ConstLabels: labels,
	}, m.ageSeconds)
	return m
}

// newDone returns the metric of the last run that kept every bound.
func newDone(registerer prometheus.Registerer) prometheus.Gauge {
	return promauto.With(registerer).NewGauge(prometheus.GaugeOpts{
		Name: "weir_prune_last_success_timestamp_seconds", Help: "Unix time of the last run that pruned every table to its bound; 0 before the first.",
	})
}

func (m *metrics) pruned(removed int64, oldest time.Time) {
	m.removed.Add(float64(removed))
	if oldest.IsZero() {
		m.oldest.Store(nil)
		return
	}
	m.oldest.Store(&oldest)
}

func (m *metrics) ageSeconds() float64 {
	oldest := m.oldest.Load()
	if oldest == nil {
		return 0
	}
	return m.clock().Sub(*oldest).Seconds()
}
