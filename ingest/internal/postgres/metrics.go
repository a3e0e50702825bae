package postgres

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/ingest"
)

// metrics count the work of searches and new small blocks.
type metrics struct {
	read       prometheus.Counter
	incomplete prometheus.Counter
	small      prometheus.Counter
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
		small: make.NewCounter(prometheus.CounterOpts{
			Name: "weir_ingest_small_blocks_total", Help: "Blocks of less than 64 KiB of entries that were kept; they are to be merged.",
		}),
	}
}

func (m metrics) kept(blocks []Block) {
	for i := range blocks {
		if blocks[i].Bytes < ingest.SmallBlockBytes {
			m.small.Inc()
		}
	}
}

func (m metrics) searched(read int, incomplete bool) {
	m.read.Add(float64(read))
	if incomplete {
		m.incomplete.Inc()
	}
}

// mergeMetrics count merges and measure their backlog.
type mergeMetrics struct {
	blocks, entries, bytes prometheus.Counter
	due                    prometheus.Gauge
	late                   prometheus.Gauge
}

func newMergeMetrics(registerer prometheus.Registerer) mergeMetrics {
	make := promauto.With(registerer)
	counter := func(name, help string) prometheus.Counter {
		return make.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	gauge := func(name, help string) prometheus.Gauge {
		return make.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	return mergeMetrics{
		blocks:  counter("weir_ingest_merged_blocks_total", "Small blocks that were merged into larger ones."),
		entries: counter("weir_ingest_merged_entries_total", "Entries that were written again in a larger block; an entry counts each time."),
		bytes:   counter("weir_ingest_merged_bytes_total", "What these entries have of text."),
		due:     gauge("weir_ingest_merges_due", "Days of projects whose small blocks are due to be looked at."),
		late:    gauge("weir_ingest_merges_late_seconds", "For how long the first of them has been due."),
	}
}
