package publisher

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

// publisherMetrics count the outcomes of messages.
type publisherMetrics struct {
	records, bytes, batches, failed, unknown prometheus.Counter
	underReplicated                          *prometheus.GaugeVec
}

func newPublisherMetrics(registerer prometheus.Registerer) publisherMetrics {
	counter := func(name, help string) prometheus.Counter {
		return promauto.With(registerer).NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return publisherMetrics{
		records: counter("weir_bus_published_records_total", "Records that the brokers have written."),
		bytes:   counter("weir_bus_published_bytes_total", "Bytes of batches that the brokers have written, as sent."),
		batches: counter("weir_bus_published_batches_total", "Batches that the brokers have written."),
		failed:  counter("weir_bus_publish_failed_records_total", "Records that surely were not written."),
		unknown: counter("weir_bus_publish_unknown_records_total", "Records that may or may not have been written."),
		underReplicated: promauto.With(registerer).NewGaugeVec(prometheus.GaugeOpts{
			Name: "weir_bus_under_replicated_partitions",
			Help: "Partitions of a topic that is written to with fewer copies in sync than they have, by what the brokers said within the last minute.",
		}, []string{"topic"}),
	}
}

// observeLayout shows the brokers' answer about a topic, if there is one.
func (m publisherMetrics) observeLayout(topic string, seen broker.TopicLayout) {
	if seen.Err != nil {
		m.underReplicated.DeleteLabelValues(topic)
		return
	}
	m.underReplicated.WithLabelValues(topic).Set(float64(seen.UnderReplicated()))
}

// settled counts a batch with a final outcome.
func (m publisherMetrics) settled(records, bytes int, err error) {
	switch {
	case err == nil:
		m.records.Add(float64(records))
		m.bytes.Add(float64(bytes))
		m.batches.Inc()
	case errors.Is(err, bus.ErrUnknownOutcome):
		m.unknown.Add(float64(records))
	default:
		m.failed.Add(float64(records))
	}
}
