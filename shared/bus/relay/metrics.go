package relay

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/bus/internal/clock"
)

type relayMetrics struct {
	records     prometheus.Counter
	republished prometheus.Counter

	mu     sync.Mutex
	behind time.Time // since when the outbox has more than was read; zero: it has not
}

func newRelayMetrics(registerer prometheus.Registerer, name string) *relayMetrics {
	labels := prometheus.Labels{"relay": name}
	m := &relayMetrics{records: promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_bus_relayed_records_total", Help: "Messages of the outbox that were published.", ConstLabels: labels,
	})}
	m.republished = promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_bus_republished_records_total", Help: "Messages of the outbox that were published again, because the log had lost them.",
		ConstLabels: labels,
	})
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_bus_relay_lag_seconds", Help: "Since when the relay did not get to the end of its outbox; 0 where another relay works.",
		ConstLabels: labels,
	}, m.lag)
	return m
}

// worked notes whether a look at the outbox got to its end. One that
// failed with nothing to publish did.
func (m *relayMetrics) worked(ended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case ended:
		m.behind = time.Time{}
	case m.behind.IsZero():
		m.behind = clock.Now()
	}
}

func (m *relayMetrics) lag() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.behind.IsZero() {
		return 0
	}
	return clock.Now().Sub(m.behind).Seconds()
}
