package app

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
)

// countErrors returns what counts the errors of
// committed records, by their headers alone.
func countErrors(registerer prometheus.Registerer) func([]bus.Record) {
	counter := promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_grouping_errors_total", Help: "Errors in applied records, including those of repeated requests.",
	})
	return func(records []bus.Record) {
		for _, record := range records {
			if n, err := strconv.Atoi(record.Header(contract.HeaderErrors)); err == nil && n > 0 {
				counter.Add(float64(n))
			}
		}
	}
}

// countEffects returns what counts created groups and overflowed errors.
func countEffects(registerer prometheus.Registerer) func(postgres.Effect) {
	created := promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_grouping_groups_created_total", Help: "Groups that were created, including those of repeated transactions.",
	})
	overflowed := promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_grouping_overflow_errors_total",
		Help: "Errors counted in an overflow group because a budget of new groups was used up, including those of repeated transactions.",
	})
	return func(effect postgres.Effect) {
		created.Add(float64(len(effect.Created)))
		overflowed.Add(float64(effect.Overflowed))
	}
}
