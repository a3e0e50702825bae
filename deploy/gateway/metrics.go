package gateway

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// NewUnreached returns the metric of requests that did not reach their
// module: no module can count them.
func NewUnreached(registerer prometheus.Registerer) *prometheus.CounterVec {
	unreached := promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "weir_gateway_unreached_requests_total", Help: "Requests that were answered 500 because their module was not reached, or ended before it answered.",
	}, []string{"module"})
	for _, module := range Modules() {
		unreached.WithLabelValues(string(module)) // shown as 0, so that the first request is a step
	}
	return unreached
}
