package kafka

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/embedded/kafka/internal/storage"
)

type metrics struct{ compactions prometheus.Counter }

func newMetrics(registerer prometheus.Registerer, store *storage.Store) *metrics {
	factory := promauto.With(registerer)
	gauge := func(name, help string, value func() int64) {
		factory.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	gauge("weir_broker_compacted_bytes", "Bytes of the compacted topics' files in the embedded broker.", store.CompactedBytes)
	gauge("weir_broker_refusing_partitions", "Partitions of the embedded broker whose last append the disk refused. They take records again once it does.",
		func() int64 { return store.Stats().Refusing })
	gauge("weir_broker_failed_partitions", "Partitions of the embedded broker that refuse records until its next start, because the disk refused a sync.",
		func() int64 { return store.Stats().Failed })
	factory.NewCounterFunc(prometheus.CounterOpts{
		Name: "weir_broker_syncs_total", Help: "Syncs of the embedded broker's log files to the disk. Each covers all records that waited.",
	}, func() float64 { return float64(store.Stats().Syncs) })
	return &metrics{factory.NewCounter(prometheus.CounterOpts{
		Name: "weir_broker_compactions_total", Help: "Compactions of the embedded broker's compacted topics while it served.",
	})}
}
