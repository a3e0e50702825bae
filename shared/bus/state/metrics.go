package state

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// measure registers the reader's instruments.
func (s *Reader) measure() {
	labels := prometheus.Labels{"topic": s.cfg.Topic}
	gauge := func(name, help string, value func() float64) {
		promauto.With(s.cfg.Metrics).NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
	}
	gauge("weir_bus_state_age_seconds", "How long ago the brokers last confirmed that the state is complete; +Inf before it is ready, "+
		"and while its log lacks what was read before.", s.ageSeconds)
	gauge("weir_bus_state_keys", "Keys that the state holds.", func() float64 { return float64(s.keys()) })
	s.passedOver = promauto.With(s.cfg.Metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_bus_state_passed_over_records_total", Help: "Records that could not be applied to the state and were passed over.", ConstLabels: labels,
	})
}

func (s *Reader) ageSeconds() float64 {
	if s.Complete() != nil {
		return math.Inf(1)
	}
	return s.Age().Seconds()
}

func (s *Reader) keys() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, held := range s.held {
		n += len(held)
	}
	return n
}
