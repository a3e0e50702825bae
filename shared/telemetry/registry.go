package telemetry

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// A Registry holds the metrics of one process.
type Registry struct {
	metrics *prometheus.Registry
}

// New returns a registry that measures the process itself: the Go
// runtime, CPU, memory and open files.
func New() *Registry {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Registry{metrics: metrics}
}

// For returns the registerer of a service, with the label service, so
// that services in one process stay apart. Registering an instrument
// twice for a service panics.
func (r *Registry) For(service string) prometheus.Registerer {
	return prometheus.WrapRegistererWith(prometheus.Labels{"service": service}, r.metrics)
}

// Registered returns the metrics of Handler, for readers in this process.
func (r *Registry) Registered() *prometheus.Registry { return r.metrics }

// Handler shows the metrics in the text format of Prometheus, or on
// request in OpenMetrics, which alone has exemplars.
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.metrics, promhttp.HandlerOpts{EnableOpenMetrics: true})
}
