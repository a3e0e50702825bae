package status

import (
	"context"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/tracing"
)

// Metrics measure the transactions of one consumer. At a scrape,
// standing collects its lag.
type Metrics struct {
	applied, Deferred, Parked, Replayed, failed prometheus.Counter
	duration, delay                             prometheus.Histogram
}

func newMetrics(registerer prometheus.Registerer, labels prometheus.Labels) Metrics {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(registerer).NewCounter(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels})
	}
	return Metrics{
		applied:  counter("weir_bus_applied_records_total", "Records whose effect is committed."),
		Deferred: counter("weir_bus_deferred_records_total", "Records over their lanes' shares that were left for later; each is applied once as well."),
		Replayed: counter("weir_bus_replayed_records_total", "Parked records that were applied after all."),
		Parked:   counter("weir_bus_parked_records_total", "Records that can never be applied and were set aside."),
		failed:   counter("weir_bus_failed_transactions_total", "Transactions that were rolled back, for whatever reason; most come again."),
		duration: promauto.With(registerer).NewHistogram(prometheus.HistogramOpts{
			Name: "weir_bus_transaction_duration_seconds", Help: "How long transactions that apply records take.",
			ConstLabels: labels, Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		delay: promauto.With(registerer).NewHistogram(prometheus.HistogramOpts{
			Name: "weir_bus_apply_delay_seconds", Help: "How long after a record was written its effect was committed; without deferred records.",
			ConstLabels: labels, Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800},
		}),
	}
}

// Transacted measures one attempt.
func (m Metrics) Transacted(took time.Duration, err error) {
	m.duration.Observe(took.Seconds())
	if err != nil {
		m.failed.Inc()
	}
}

// Took counts committed records. It observes no delay of deferred ones,
// which are late on purpose. Records of sampled requests have the trace
// of ctx, their transaction, as an exemplar.
func (m Metrics) Took(ctx context.Context, w lanes.Work, now time.Time) {
	m.applied.Add(float64(len(w.Records)))
	if w.Lane != nil {
		return
	}
	traced := trace.SpanContextFromContext(ctx).IsSampled()
	for i := range w.Records {
		delay := now.Sub(w.Records[i].Time).Seconds()
		if traced && tracing.IsSampled(w.Records[i].Header(contract.HeaderTraceparent)) {
			tracing.Observe(ctx, m.delay, delay)
		} else {
			m.delay.Observe(delay)
		}
	}
}

// standing collects a consumer's status at a scrape.
type standing struct {
	status                        *Status
	lag, halted, haltedLanes      *prometheus.Desc
	lanes, records, bytes, oldest *prometheus.Desc
}

func newStanding(s *Status, labels prometheus.Labels) standing {
	desc := func(name, help string) *prometheus.Desc { return prometheus.NewDesc(name, help, nil, labels) }
	return standing{
		status:  s,
		lanes:   desc("weir_bus_deferred_lanes", "Positions of lanes, each in one partition, that are behind the partition's."),
		records: desc("weir_bus_deferred_records", "Records that lanes have left for later, in assigned partitions."),
		bytes:   desc("weir_bus_deferred_bytes", "Bytes of those records. They lie in the log, not here."),
		oldest:  desc("weir_bus_deferred_age_seconds", "How long ago the oldest of them was written, or one just before it; 0: there are none."),
		lag: prometheus.NewDesc("weir_bus_lag_records",
			"Offsets that an assigned partition is behind the end of its log, by what the brokers last answered, and records deferred in it.",
			[]string{"partition"}, labels),
		halted: prometheus.NewDesc("weir_bus_halted_partitions",
			"Assigned partitions that are stopped because their position lies outside the log.", nil, labels),
		haltedLanes: desc("weir_bus_halted_lanes", "Lanes that are stopped in an assigned partition because what they left behind is not in the log any more."),
	}
}

// Describe implements prometheus.Collector.
func (s standing) Describe(out chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{s.lag, s.halted, s.haltedLanes, s.lanes, s.records, s.bytes, s.oldest} {
		out <- desc
	}
}

// Collect implements prometheus.Collector.
func (s standing) Collect(out chan<- prometheus.Metric) {
	for partition, lag := range s.status.Lag() {
		out <- prometheus.MustNewConstMetric(s.lag, prometheus.GaugeValue, float64(lag), strconv.Itoa(partition))
	}
	behind := s.status.deferred()
	partitions, lanes := s.status.Stops()
	for desc, value := range map[*prometheus.Desc]float64{
		s.halted: float64(partitions), s.haltedLanes: float64(lanes), s.lanes: float64(behind.lanes), s.records: float64(behind.records),
		s.bytes: float64(behind.bytes), s.oldest: behind.age.Seconds(),
	} {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value)
	}
}

// NewMetrics registers the instruments of a consumer.
func NewMetrics(s *Status, registerer prometheus.Registerer) Metrics {
	labels := prometheus.Labels{"group": s.group, "topic": s.topic}
	if registerer != nil {
		registerer.MustRegister(newStanding(s, labels))
	}
	return newMetrics(registerer, labels)
}
