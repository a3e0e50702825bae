package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Limits of a connection. The reader chooses a profile's duration, so
// writing has no limit.
const (
	readTimeout  = 5 * time.Second
	drainTimeout = time.Second
)

// Config sets where a process shows its metrics. Embed it in a
// service's configuration.
type Config struct {
	MetricsListen string `help:"Address of a plain HTTP listener with /metrics and /debug/pprof, such as 127.0.0.1:9464. Keep it off public networks. Empty: none." env:"WEIR_METRICS_LISTEN"`

	Registry *Registry `kong:"-"` // of a process with several services; nil: a registry of its own
}

// A Service measures one service.
type Service struct {
	Registerer prometheus.Registerer // registers its instruments

	registry *Registry
	listen   string
	logger   *slog.Logger
	addr     atomic.Pointer[string]
}

// Service registers the service of that name. It opens nothing.
func (c Config) Service(name string, logger *slog.Logger) *Service {
	registry := c.Registry
	if registry == nil {
		registry = New()
	}
	return &Service{Registerer: registry.For(name), registry: registry, listen: c.MetricsListen, logger: logger}
}

// Addr returns the address of the metrics; "" before Run, or without
// a configured address.
func (s *Service) Addr() string {
	if addr := s.addr.Load(); addr != nil {
		return *addr
	}
	return ""
}

// Run serves the metrics until ctx ends, if an address is
// configured. It fails if the address is in use.
func (s *Service) Run(ctx context.Context) error {
	if s.listen == "" {
		<-ctx.Done()
		return nil
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", s.listen)
	if err != nil {
		return fmt.Errorf("cannot show metrics on WEIR_METRICS_LISTEN %q (is another process using it?): %w", s.listen, err)
	}
	addr := listener.Addr().String()
	s.addr.Store(&addr)
	s.logger.Info("showing metrics", slog.String("url", "http://"+addr+"/metrics"))
	return s.serve(ctx, listener)
}

func (s *Service) serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s.routes(), ReadTimeout: readTimeout,
		ErrorLog: slog.NewLogLogger(s.logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("cannot show metrics: %w", err)
	case <-ctx.Done():
		return shutdown(server)
	}
}

// shutdown lets a scrape finish. It cuts off a running profile.
func shutdown(server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), drainTimeout)
	defer cancel()
	if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
		return server.Close()
	} else if err != nil {
		return fmt.Errorf("cannot stop showing metrics: %w", err)
	}
	return nil
}

// routes leaves out pprof's command line: it may hold secrets.
func (s *Service) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.registry.Handler())
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	return mux
}

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
