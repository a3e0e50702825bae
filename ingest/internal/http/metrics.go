package http

import (
	"errors"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/httpapi"
)

// Metrics count what the intake accepts and refuses. A nil *Metrics
// counts nothing.
type Metrics struct {
	entries, bytes, rejected prometheus.Counter
	faults                   map[ingest.Code]prometheus.Counter // bounded by the codes
	refused                  *prometheus.CounterVec
	wasted                   prometheus.Counter
}

// NewMetrics registers the instruments.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	metrics := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return metrics.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	faults := metrics.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_ingest_faults_total", Help: "What was wrong with rejected entries, as far as the answers list it.",
	}, []string{"code"})
	m := &Metrics{
		entries:  counter("weir_ingest_accepted_entries_total", "Entries that were acknowledged."),
		bytes:    counter("weir_ingest_accepted_bytes_total", "Bytes of the acknowledged entries, as they are charged."),
		rejected: counter("weir_ingest_rejected_entries_total", "Entries that are invalid."),
		wasted:   counter("weir_ingest_wasted_bytes_total", "Bytes of bodies, decompressed, of which nothing was accepted by a fault of their sender."),
		faults:   map[ingest.Code]prometheus.Counter{},
		refused: metrics.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_ingest_refused_requests_total", Help: "Requests of which nothing was accepted, by the code that they were answered with.",
		}, []string{"code"}),
	}
	for _, code := range ingest.EntryCodes() {
		m.faults[code] = faults.WithLabelValues(string(code))
	}
	return m
}

// waste counts wasted bytes.
func (m *Metrics) waste(bytes int64) {
	if m != nil {
		m.wasted.Add(float64(bytes))
	}
}

// accepted counts acknowledged entries.
func (m *Metrics) accepted(batch *ingest.Batch) {
	if m != nil {
		m.entries.Add(float64(len(batch.Accepted)))
		m.bytes.Add(float64(batch.Bytes))
	}
}

// judged counts the faults of entries.
func (m *Metrics) judged(batch *ingest.Batch) {
	if m == nil || batch.Rejected == 0 {
		return
	}
	m.rejected.Add(float64(batch.Rejected))
	for i := range batch.Faults {
		if counter := m.faults[batch.Faults[i].Code]; counter != nil {
			counter.Inc()
		}
	}
}

// watch counts the requests that handle refuses.
func (m *Metrics) watch(handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	if m == nil {
		return handle
	}
	return func(w http.ResponseWriter, r *http.Request) error {
		err := handle(w, r)
		if err != nil {
			code := httpapi.CodeInternal
			if problem := (*httpapi.Problem)(nil); errors.As(err, &problem) {
				code = problem.Code
			}
			m.refused.WithLabelValues(code).Inc()
		}
		return err
	}
}
