package status

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.opentelemetry.io/otel/trace"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
	"github.com/weirlog/weir/shared/bus/internal/clock"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/tracing"
)

// Status is a consumer's visible state. Safe for concurrent use.
type Status struct {
	Reach *Reach // of its partitions
	Log   *Log   // what is known of the topic's log

	group, topic string

	mu         sync.Mutex
	joined     bool  // it once had partitions, or others had all
	leaderless []int // partitions that can't be read yet
	halted     map[int]error
	stopped    map[lanes.Key]error         // lanes; bounded by Lanes.MaxPositions
	behind     map[lanes.Key]lanes.Backlog // bounded by Lanes.MaxPositions
}

// New returns the status of a consumer without partitions.
func New(group, topic string) *Status {
	return &Status{
		Reach: newReach(), group: group, topic: topic,
		Log:    &Log{err: fmt.Errorf("the positions of consumer %q are not compared with %q yet", group, topic)},
		halted: make(map[int]error), stopped: make(map[lanes.Key]error), behind: make(map[lanes.Key]lanes.Backlog),
	}
}

// Ready returns the error of Consumer.Ready.
func (s *Status) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, err := range s.halted {
		return fmt.Errorf("consumer %q has stopped partition %d of %q: %w", s.group, p, s.topic, err)
	}
	for at, err := range s.stopped {
		return fmt.Errorf("consumer %q has stopped a lane in partition %d of %q: %w", s.group, at.Partition, s.topic, err)
	}
	switch {
	case !s.joined:
		return fmt.Errorf("consumer %q has no partitions of %q yet", s.group, s.topic)
	case len(s.leaderless) > 0:
		return fmt.Errorf("consumer %q can't read partitions %v of %q yet: they have no leader", s.group, s.leaderless, s.topic)
	}
	return nil
}

// Claim notes an assignment and its stopped partitions.
func (s *Status) Claim(halted map[int]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.joined, s.leaderless, s.halted, s.stopped = true, nil, halted, make(map[lanes.Key]error)
	s.Reach.claim()
}

// Lack notes a partition that can't be read before it has a leader.
func (s *Status) Lack(partition int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaderless = append(s.leaderless, partition)
}

// Idle notes that other members have all partitions.
func (s *Status) Idle() {
	s.Claim(make(map[int]error))
	s.Reach.CatchUp()
}

// Leave notes the end of an assignment.
func (s *Status) Leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = make(map[lanes.Key]lanes.Backlog)
	s.Reach.forget()
}

// Halt notes why a partition is stopped.
func (s *Status) Halt(partition int, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.halted[partition] = reason
}

// IsHalted reports whether a partition is stopped.
func (s *Status) IsHalted(partition int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.halted[partition] != nil
}

// Stop notes why a lane is stopped in a partition.
func (s *Status) Stop(at lanes.Key, reason error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped[at] = reason
}

// Stops counts stopped partitions and lanes.
func (s *Status) Stops() (partitions, lanes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.halted), len(s.stopped)
}

// Keep notes a lane's backlog.
func (s *Status) Keep(b lanes.Backlog) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind[b.Key] = b
}

// Finish notes that a lane has caught up in a partition.
func (s *Status) Finish(at lanes.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.behind, at)
	delete(s.stopped, at)
}

// Lag returns what Consumer.Lag does.
func (s *Status) Lag() map[int]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	lag := s.Reach.lag()
	for at, b := range s.behind {
		lag[at.Partition] += b.Records
	}
	return lag
}

// deferral sums all lanes' deferred records.
type deferral struct {
	lanes          int
	records, bytes int64
	age            time.Duration
}

func (s *Status) deferred() (d deferral) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.behind {
		d.lanes++
		d.records, d.bytes, d.age = d.records+b.Records, d.bytes+b.Bytes, max(d.age, clock.Now().Sub(b.Since))
	}
	return d
}

// A Log is what is known of a log that positions lie in. Safe for
// concurrent use.
type Log struct {
	mu       sync.Mutex
	compared bool  // positions were compared with it
	err      error // why they don't lie in it; nil: they do
}

// Intact returns the error of Consumer.LogIntact.
func (l *Log) Intact() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Compared notes the result of comparing all positions of the group
// with the log. It reports whether that is damage not known before.
func (l *Log) Compared(result error) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	news = result != nil && (l.err == nil || l.err.Error() != result.Error())
	l.compared, l.err = true, result
	return news
}

// NotCompared notes a first comparison that failed: nil trusts the log.
// After a first result it changes nothing.
func (l *Log) NotCompared(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.compared {
		l.err = why
	}
}

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
