package postgres

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics count what searches take.
type metrics struct {
	read       prometheus.Counter
	incomplete prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) metrics {
	make := promauto.With(registerer)
	return metrics{
		read: make.NewCounter(prometheus.CounterOpts{
			Name: "weir_ingest_search_read_bytes_total", Help: "What searches have unpacked, and 128 bytes for each header of a block that they looked at.",
		}),
		incomplete: make.NewCounter(prometheus.CounterOpts{
			Name: "weir_ingest_search_incomplete_total", Help: "Pages that ended because the search had its share of time or of bytes.",
		}),
	}
}

func (m metrics) searched(read int, incomplete bool) {
	m.read.Add(float64(read))
	if incomplete {
		m.incomplete.Inc()
	}
}
