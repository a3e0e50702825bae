package outcomes

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Measure shows how much the meter holds, and what it counted without keys.
func (m *Meter) Measure(registerer prometheus.Registerer) {
	metrics := promauto.With(registerer)
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_ingest_outcome_counters", Help: "Counters of outcomes in memory, by key."},
		func() float64 { return float64(m.counters.Load()) })
	metrics.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_ingest_outcomes_without_key_total", Help: "Outcomes that were counted by organization alone, because too many keys were in use at once.",
	}, func() float64 { return float64(m.merged.Load()) })
}
