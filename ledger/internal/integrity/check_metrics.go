package integrity

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ledger"
	"github.com/weirlog/weir/shared/contract"
)

// checkMetrics count the checks and their violations.
type checkMetrics struct {
	rounds, ranges, reread prometheus.Counter
	violations             *prometheus.CounterVec
	verified               *prometheus.GaugeVec
	lag, sweptAt           prometheus.Gauge
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
			Name: "weir_ledger_violations_total", Help: "Times that an invariant of the books did not hold. Alert above 0.",
		}, []string{"invariant"}),
		verified: metrics.NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_ledger_verified_offset", Help: "Through which offset of weir.logs.v1 the replicas have checked what was applied.",
		}, []string{"partition"}),
		lag: metrics.NewGauge(prometheus.GaugeOpts{
			Name: "weir_ledger_check_lag_seconds", Help: "Age of the oldest range that no replica had checked at the end of a round; 0 where all were.",
		}),
	}
	m.sweptAt = metrics.NewGauge(prometheus.GaugeOpts{
		Name: "weir_ledger_decisions_checked_timestamp_seconds",
		Help: "Unix time at which every organization was last compared with what was decided about it; 0 before the first time.",
	})
	for _, invariant := range ledger.Invariants() {
		m.violations.WithLabelValues(invariant) // starts at 0, so that an alert sees the first increase
	}
	return m
}

// checked records one claim.
func (m *checkMetrics) checked(ranges, reread int, found []ledger.Violation) {
	m.ranges.Add(float64(ranges))
	m.reread.Add(float64(reread))
	for _, violation := range found {
		m.violations.WithLabelValues(violation.Invariant).Inc()
	}
}

// swept records that all organizations were compared.
func (m *checkMetrics) swept(at time.Time) { m.sweptAt.Set(float64(at.Unix())) }

// ended records a round: the offsets through which all is checked, and
// when the oldest unchecked range was booked.
func (m *checkMetrics) ended(through contract.Positions, oldest, now time.Time) {
	m.rounds.Inc()
	for partition, next := range through {
		m.verified.WithLabelValues(strconv.Itoa(partition)).Set(float64(next))
	}
	m.lag.Set(0)
	if !oldest.IsZero() {
		m.lag.Set(now.Sub(oldest).Seconds())
	}
}
