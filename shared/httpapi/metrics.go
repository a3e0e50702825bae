package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/tracing"
)

// Metrics measures requests. Create one for each router.
type Metrics struct {
	duration *prometheus.HistogramVec
}

// NewMetrics registers the instruments, if registerer is not nil.
func NewMetrics(registerer prometheus.Registerer) *Metrics {
	return &Metrics{duration: promauto.With(registerer).NewHistogramVec(prometheus.HistogramOpts{
		Name:    "weir_http_request_duration_seconds",
		Help:    "How long requests took, to the last byte of the answer.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"route", "method", "status"})}
}

// Observe measures one request by its route's pattern, such as
// /v1/projects/{project}, and the class of its status, such as 2xx.
// Client input is never a label: an unknown method is "other", an unknown
// path has its route. The trace of ctx, if sampled, is an exemplar.
func (m *Metrics) Observe(ctx context.Context, route, method string, status int, took time.Duration) {
	tracing.Observe(ctx, m.duration.WithLabelValues(route, known(method), strconv.Itoa(status/100)+"xx"), took.Seconds())
}

// known returns a known method, or "other": it is a client's text.
func known(method string) string {
	if slices.Contains(methods, method) {
		return method
	}
	return "other"
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}
