package unitofwork

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/shared/fair"
	"github.com/weirlog/weir/shared/httpapi"
)

// Bounds of those who wait to decide.
const (
	waitingPerOrganization = 16
	waitingInAll           = 256
	comeBack               = 2 * time.Second // Retry-After of those who are refused
)

// Turns are those in which organizations decide. Who decides holds a connection, also while it waits for a lock. It is safe for concurrent use.
type Turns struct {
	queue   *fair.Queue
	longest time.Duration // that a decision waits
	refused prometheus.Counter
}

// NewTurns makes turns for so many at once, each of another organization: decisions of one wait for each other's lock anyway.
// Who waits for longest is refused.
func NewTurns(atOnce int, longest time.Duration, metrics prometheus.Registerer) *Turns {
	with := promauto.With(metrics)
	t := &Turns{
		longest: longest,
		queue:   fair.NewQueue(fair.Limits{Slots: atOnce, PerKey: 1, Waiting: waitingPerOrganization, Queued: waitingInAll}),
		refused: with.NewCounter(prometheus.CounterOpts{
			Name: "weir_ledger_decisions_refused_total", Help: "Decisions that were refused because their turn did not come.",
		}),
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_ledger_decisions_waiting", Help: "Decisions that wait for their turn."},
		func() float64 { return float64(t.queue.Queued()) })
	return t
}

// enter waits for an organization's turn, which lasts until leave is called. A Problem 429 means that nothing was decided.
func (t *Turns) enter(ctx context.Context, organization string) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, t.longest)
	defer cancel()
	leave, err = t.queue.Acquire(waiting, organization)
	switch {
	case errors.Is(err, fair.ErrFull):
		return nil, t.refuse("Too many changes of your organization wait for their turn. Send fewer at once.")
	case err != nil && ctx.Err() == nil:
		return nil, t.refuse("The changes before yours take too long. Try again.")
	}
	return leave, err
}

func (t *Turns) refuse(detail string) error {
	t.refused.Inc()
	return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded", detail).RetryAfter(comeBack)
}
