package allinone

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/lifecycle"
)

// How often backends are asked, and how long they may take.
const (
	watchInterval = time.Second
	watchTimeout  = 3 * time.Second
)

// A watch asks one backend continuously whether it answers. Requests for
// /readyz read what it found, so strangers cause no work.
type watch struct {
	name   string
	ask    func(ctx context.Context) error
	logger *slog.Logger
	away   atomic.Pointer[error] // why it does not answer; nil: it does
	up     prometheus.Gauge
}

// NewBackendUp registers the metric of the backends.
func NewBackendUp(metrics prometheus.Registerer) *prometheus.GaugeVec {
	return promauto.With(metrics).NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_backend_up", Help: "Whether the database or the broker of weir run answers: 1 or 0.",
	}, []string{"backend"})
}

func newWatch(name string, ask func(ctx context.Context) error, up *prometheus.GaugeVec, logger *slog.Logger) *watch {
	w := &watch{name: name, ask: ask, logger: logger.With(slog.String("backend", name)), up: up.WithLabelValues(name)}
	w.up.Set(1) // the modules were built on it
	return w
}

func (w *watch) run(ctx context.Context) error {
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, watchInterval) {
		w.look(ctx)
	}
	return nil
}

func (w *watch) look(ctx context.Context) {
	asked, cancel := context.WithTimeout(ctx, watchTimeout)
	defer cancel()
	err := w.ask(asked)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		if w.away.Swap(nil) != nil {
			w.logger.Warn("answers again") // a warning, as its end was
		}
		w.up.Set(1)
		return
	}
	if w.away.Swap(&err) == nil {
		w.logger.Warn("does not answer", slog.String("error", err.Error()))
	}
	w.up.Set(0)
}

// check returns the part that is not ready, or nil.
func (w *watch) check() error {
	if away := w.away.Load(); away != nil {
		return httpapi.Part(w.name, *away)
	}
	return nil
}

// askDatabase connects: open connections would answer while the server
// admits no others.
func askDatabase(ctx context.Context, url string) error {
	config, err := pgxpool.ParseConfig(url) // it may have settings of pools, too
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return err
	}
	return errors.Join(conn.Ping(ctx), conn.Close(ctx))
}

// askBrokers succeeds if any broker answers.
func askBrokers(ctx context.Context, brokers []string, dialer *bus.Dialer) (err error) {
	for _, broker := range brokers {
		reached := cluster.Reach(ctx, broker, dialer)
		if reached == nil {
			return nil
		}
		err = errors.Join(err, reached)
	}
	return err
}
