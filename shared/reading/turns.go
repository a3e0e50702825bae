package reading

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

// Bounds of the lines.
const (
	waitingPerOrganization = 16
	waitingInAll           = 256
	longestWait            = 5 * time.Second
	comeBack               = 2 * time.Second // Retry-After of those who are refused
)

// Turns are those of one module. It is safe for concurrent use.
type Turns struct {
	queue   *fair.Queue
	refused prometheus.Counter
}

// NewTurns makes turns for so many at once, at least 1, of which one organization has half, rounded
// up. The names of the instruments begin with a prefix, such as "weir_grouping".
func NewTurns(atOnce int, metrics prometheus.Registerer, prefix string) *Turns {
	with := promauto.With(metrics)
	t := &Turns{
		queue: fair.NewQueue(fair.Limits{Slots: atOnce, PerKey: (atOnce + 1) / 2, Waiting: waitingPerOrganization, Queued: waitingInAll}),
		refused: with.NewCounter(prometheus.CounterOpts{
			Name: prefix + "_reads_refused_total", Help: "Reads that were refused because their organization had its share.",
		}),
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "_reads_running", Help: "Reads at work."},
		func() float64 { return float64(t.queue.Held()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: prefix + "_reads_waiting", Help: "Reads that wait for their turn."},
		func() float64 { return float64(t.queue.Queued()) })
	return t
}

// Enter waits for an organization's turn, which lasts until leave is called. Who has a turn asks for
// no second one. A Problem 429 means that its share is used up.
func (t *Turns) Enter(ctx context.Context, organization string) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	leave, err = t.queue.Acquire(waiting, organization)
	switch {
	case errors.Is(err, fair.ErrFull):
		return nil, t.refuse("Too many reads of your organization wait for their turn. Send fewer at once.")
	case err != nil && ctx.Err() == nil:
		return nil, t.refuse("The reads before yours take too long. Try again.")
	}
	return leave, err
}

func (t *Turns) refuse(detail string) error {
	t.refused.Inc()
	return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded", detail).RetryAfter(comeBack)
}
