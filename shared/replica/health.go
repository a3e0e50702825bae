package replica

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// A health decides whether a replica is asked. After a failure it
// rests, so that few reads wait in vain.
type health struct {
	rest    time.Duration
	clock   func() time.Time
	logger  *slog.Logger
	reads   *prometheus.CounterVec
	resting atomic.Int64 // its end, in nanoseconds since 1970; 0 if the replica was reached after its last failure
	failing atomic.Bool
}

func newHealth(rest time.Duration, options Options) *health {
	return &health{rest: rest, clock: options.Clock, logger: options.Logger, reads: promauto.With(options.Metrics).NewCounterVec(prometheus.CounterOpts{
		Name: "weir_postgres_replica_reads_total",
		Help: "Reads for the replica: it answered, or the primary did, as the replica was behind, failed, cancelled the read, or rests for a moment after that.",
	}, []string{"outcome"})}
}

func (h *health) count(outcome string) { h.reads.WithLabelValues(outcome).Inc() }

// rests reports whether a read must do without the replica. When a rest ends,
// one read tries, and the others do without until it has reached the replica.
func (h *health) rests() bool {
	now, until := h.clock().UnixNano(), h.resting.Load()
	rests := now < until || until != 0 && !h.resting.CompareAndSwap(until, now+int64(h.rest))
	if rests {
		h.count("rests")
	}
	return rests
}

// failed notes that a read could not begin. If the reader's context
// ended, the replica is not to blame: another read may try.
func (h *health) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		if until := h.resting.Load(); until != 0 {
			h.resting.CompareAndSwap(until, h.clock().UnixNano())
		}
		return
	}
	h.resting.Store(h.clock().Add(h.rest).UnixNano())
	if errors.Is(err, errBehind) {
		h.count("behind")
	} else {
		h.count("failed")
	}
	if !h.failing.Swap(true) {
		h.logger.Warn("the database answers in place of its replica", slog.String("error", err.Error()))
	}
}

// interrupted notes that the replica cancelled a read, as it does when
// the read needs rows that the primary has removed.
func (h *health) interrupted() { h.count("cancelled") }

func (h *health) answered() { h.count("answered") }

// reached notes that a read can begin.
func (h *health) reached() {
	h.resting.Store(0)
	if h.failing.Swap(false) {
		h.logger.Info("the replica answers again")
	}
}
