package service

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// checkMetrics count what the running checks looked at and found.
type checkMetrics struct {
	rounds, ranges, reread prometheus.Counter
	violations             *prometheus.CounterVec
	verified               *prometheus.GaugeVec
}

func newCheckMetrics(registerer prometheus.Registerer) *checkMetrics {
	metrics := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return metrics.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	m := &checkMetrics{
		rounds: counter("weir_ledger_check_rounds_total", "Rounds of checks that came to their end."),
		ranges: counter("weir_ledger_checked_ranges_total", "Ranges of the log that were compared with their transfers."),
		reread: counter("weir_ledger_reread_ranges_total", "Ranges that were read again from the log and compared."),
		violations: metrics.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_ledger_violations_total", Help: "Times that an invariant of the books did not hold. Anything but 0 is an alarm.",
		}, []string{"invariant"}),
		verified: metrics.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_ledger_verified_offset", Help: "Through which offset of weir.logs.v1 what this process saw applied is checked.",
		}, []string{"partition"}),
	}
	for _, invariant := range ledger.Invariants() {
		m.violations.WithLabelValues(invariant) // shown as 0, so that the first one is a step that an alarm can see
	}
	return m
}

// checked notes a round.
func (m *checkMetrics) checked(ranges, reread int, found []ledger.Violation, through contract.Positions) {
	m.rounds.Inc()
	m.ranges.Add(float64(ranges))
	m.reread.Add(float64(reread))
	for _, violation := range found {
		m.violations.WithLabelValues(violation.Invariant).Inc()
	}
	for partition, next := range through {
		m.verified.WithLabelValues(strconv.Itoa(partition)).Set(float64(next))
	}
}
