package keyfact

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Measure shows how many keys the meter counts, and what it missed.
func (m *Meter) Measure(registerer prometheus.Registerer) {
	metrics := promauto.With(registerer)
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_watched_keys", Help: "API keys whose use is counted in memory."},
		func() float64 { return float64(m.Keys()) })
	metrics.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_missed_key_uses_total", Help: "Uses of API keys that were not counted, because too many keys were in use at once.",
	}, func() float64 { return float64(m.Missed()) })
}
