package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/lifecycle"
)

// Limits of restarts. The pause before a restart is zero for the first
// one within restartWindow, and then doubles.
const (
	mostRestarts  = 5
	restartWindow = 10 * time.Minute
	restartPause  = time.Second
	fullDiskPause = 5 * time.Second
	lookInterval  = 100 * time.Millisecond
)

// ErrKeepsEnding means that a server ended again and again.
var ErrKeepsEnding = errors.New("PostgreSQL keeps ending")

// NewRestarts registers the metric of Supervise.
func NewRestarts(metrics prometheus.Registerer) prometheus.Counter {
	return promauto.With(metrics).NewCounter(prometheus.CounterOpts{
		Name: "weir_embedded_postgres_restarts_total", Help: "Restarts of the embedded PostgreSQL after it had ended by itself.",
	})
}

// Supervise starts the server again, at the same address, whenever it has
// ended, until ctx ends: mostRestarts times within restartWindow at most,
// and then it returns ErrKeepsEnding. Starts that a full disk prevents do
// not count: they are repeated until there is space. Supervise must have
// returned before Stop is called.
func (s *Server) Supervise(ctx context.Context, clock func() time.Time) error {
	return s.supervise(ctx, clock, restarts{pause: restartPause})
}

func (s *Server) supervise(ctx context.Context, clock func() time.Time, restarts restarts) error {
	var failed error // of the last start
	for ; ctx.Err() == nil; lifecycle.Pause(ctx, lookInterval) {
		if s.cluster.runningPort() != 0 {
			continue
		}
		reason := s.whyEnded(failed)
		pause, allowed := restarts.next(clock())
		if !allowed {
			return fmt.Errorf("%w: %d restarts within %s did not help: %s: remove the cause, and start again",
				ErrKeepsEnding, mostRestarts, restartWindow, reason)
		}
		s.cluster.logger.Warn("PostgreSQL has ended and is started again", slog.Int("restart", len(restarts.at)), slog.Int("of", mostRestarts),
			slog.Duration("after", pause), slog.String("reason", reason))
		lifecycle.Pause(ctx, pause)
		if failed = s.startWithSpace(ctx); failed == nil {
			s.restarts.Inc()
			s.cluster.logger.Info("PostgreSQL runs again", slog.Int("port", s.port))
		}
	}
	return nil
}

// startWithSpace starts the server once the disk has space for it.
func (s *Server) startWithSpace(ctx context.Context) error {
	err := s.cluster.start(ctx, s.port, s.settings)
	for errors.Is(err, ErrDiskFull) && ctx.Err() == nil {
		s.cluster.logger.Error("PostgreSQL waits for space on its disk", slog.String("error", err.Error()))
		lifecycle.Pause(ctx, fullDiskPause)
		err = s.cluster.start(ctx, s.port, s.settings)
	}
	return err
}

// whyEnded returns why the server does not run: its last start failed,
// or what the end of its log says.
func (s *Server) whyEnded(failed error) string {
	if failed != nil {
		return failed.Error()
	}
	end, err := s.cluster.log().tail()
	if err != nil {
		return err.Error()
	}
	if i := strings.LastIndex(end, panicked); i >= 0 {
		end, _, _ = strings.Cut(end[i+len(panicked):], "\n")
	}
	return fmt.Sprintf("%s (more in %q)", lastLine([]byte(end), errors.New("its log does not say why")), s.LogFile())
}

// panicked precedes the reason in the log of a server that gives up.
const panicked = "PANIC:"

// restarts are the last ones, within restartWindow.
type restarts struct {
	pause time.Duration // before the second
	at    []time.Time
}

// next notes a restart, and returns the pause before it; or that there
// were as many as are allowed.
func (r *restarts) next(now time.Time) (pause time.Duration, allowed bool) {
	for len(r.at) > 0 && now.Sub(r.at[0]) >= restartWindow {
		r.at = r.at[1:]
	}
	if len(r.at) == mostRestarts {
		return 0, false
	}
	if n := len(r.at); n > 0 {
		pause = r.pause << (n - 1)
	}
	r.at = append(r.at, now)
	return pause, true
}
