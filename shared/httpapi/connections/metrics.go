package connections

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics measure a table's use and what it closes.
type metrics struct {
	closings, delays *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, t *Table, limit int) *metrics {
	factory := promauto.With(registerer)
	for state, name := range map[State]string{Silent: "silent", Idle: "idle", Active: "active"} {
		factory.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "weir_http_connections", Help: "Open connections: silent before their first request, active in a request, idle between.",
			ConstLabels: prometheus.Labels{"state": name},
		}, func() float64 { return float64(t.Count(state)) })
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_http_connections_limit", Help: "How many connections may be open.",
	}, func() float64 { return float64(limit) })
	return &metrics{
		closings: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_http_connections_closed_total",
			Help: "Connections closed to make room, for want of room, for their network's rate, for a protocol error, or because their reader took nothing.",
		}, []string{"reason"}),
		delays: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_http_connections_delayed_total",
			Help: "How often a connection had to wait because its network makes new ones too fast (arrivals), or sends frames that ask for nothing (flood).",
		}, []string{"reason"}),
	}
}

func (m *metrics) closed(reason Reason)  { m.closings.WithLabelValues(string(reason)).Inc() }
func (m *metrics) delayed(reason Reason) { m.delays.WithLabelValues(string(reason)).Inc() }
