package app

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// countErrors returns what counts the errors in records whose effect is committed, by their headers alone. New groups
// show as records that the relay of facts has published.
func countErrors(registerer prometheus.Registerer) func([]bus.Record) {
	counter := promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_grouping_errors_total", Help: "Errors in the records that are applied, those of requests that came twice included.",
	})
	return func(records []bus.Record) {
		for _, record := range records {
			if n, err := strconv.Atoi(record.Header(contract.HeaderErrors)); err == nil && n > 0 {
				counter.Add(float64(n))
			}
		}
	}
}
