package continuous

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics are those of a continuous backup.
type Metrics struct {
	base, archived, verified prometheus.Gauge
	lag, verifySeconds       prometheus.Gauge
	bytes                    *prometheus.GaugeVec
	failed                   *prometheus.CounterVec
}

// NewMetrics registers them.
func NewMetrics(registerer prometheus.Registerer) Metrics {
	with := promauto.With(registerer)
	gauge := func(name, help string) prometheus.Gauge {
		return with.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	m := Metrics{
		base:          gauge("weir_backup_base_timestamp_seconds", "When the newest base backup was made; 0: there is none."),
		archived:      gauge("weir_backup_archived_timestamp_seconds", "Everything that was committed before is in the backup; 0: not known yet."),
		verified:      gauge("weir_backup_verified_timestamp_seconds", "When a base backup was last restored and found whole; 0: none was."),
		lag:           gauge("weir_backup_lag_bytes", "Bytes of write-ahead log that the server has and the backup lacks."),
		verifySeconds: gauge("weir_backup_verify_seconds", "How long the last restore took."),
		bytes:         with.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_backup_bytes", Help: "Size of the backup, by part: base, wal."}, []string{"part"}),
		failed: with.NewCounterVec(prometheus.CounterOpts{Name: "weir_backup_failures_total",
			Help: "Failures by part: receive, look, base, verify, remove. Each is tried again."}, []string{"part"}),
	}
	for _, part := range parts {
		m.failed.WithLabelValues(part)
	}
	return m
}

func (m Metrics) show(s Status) {
	for gauge, at := range map[prometheus.Gauge]time.Time{m.base: s.Base, m.archived: s.Archived, m.verified: s.Verified} {
		if !at.IsZero() {
			gauge.Set(float64(at.UnixMilli()) / 1000)
		}
	}
	for part, size := range s.Bytes {
		m.bytes.WithLabelValues(part).Set(float64(size))
	}
}

// parts are what a failure is of.
var parts = []string{"receive", "look", "base", "verify", "remove"}

// failures are the parts that failed and have not worked since.
type failures struct {
	mu sync.Mutex
	at map[string]time.Time // bounded by parts
}

func (f *failures) note(part string, failed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.at, part)
	if failed {
		f.at[part] = time.Now().UTC()
	}
}

func (f *failures) open() map[string]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.at)
}
