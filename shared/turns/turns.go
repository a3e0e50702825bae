package turns

import (
	"context"
	"errors"
	"net/http"
	"strings"
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
	retryAfter             = 2 * time.Second // Retry-After of refused requests
)

// Config configures Turns.
type Config struct {
	Places          int           // concurrent turns, at least 1
	PerOrganization int           // of these
	Wait            time.Duration // longest wait; then the request is refused
	Module          string        // the prefix of the instruments' names, such as "weir_grouping"
	Noun            string        // of what has turns, in the instruments' names, such as "reads"
	Asked           string        // its name in refusals
}

// longestRead is shorter than clients wait.
const longestRead = 5 * time.Second

// Reads configures turns for a module's reads: one organization has
// half of the places, rounded up.
func Reads(places int, module string) Config {
	return Config{Places: places, PerOrganization: (places + 1) / 2, Wait: longestRead, Module: module, Noun: "reads", Asked: "reads"}
}

// Turns are those of one module for one purpose. It is safe for concurrent use.
type Turns struct {
	config  Config
	queue   *fair.Queue
	refused prometheus.Counter
}

// New returns turns.
func New(config Config, metrics prometheus.Registerer) *Turns {
	with, name, help := promauto.With(metrics), config.Module+"_"+config.Noun, strings.ToUpper(config.Noun[:1])+config.Noun[1:]
	t := &Turns{
		config: config,
		queue: fair.NewQueue(fair.Limits{
			Slots: config.Places, PerKey: config.PerOrganization, Waiting: waitingPerOrganization, Queued: waitingInAll,
		}),
		refused: with.NewCounter(prometheus.CounterOpts{
			Name: name + "_refused_total", Help: help + " that were refused because their organization had its share, or their turn did not come.",
		}),
	}
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: name + "_running", Help: help + " at work."},
		func() float64 { return float64(t.queue.Held()) })
	with.NewGaugeFunc(prometheus.GaugeOpts{Name: name + "_waiting", Help: help + " that wait for their turn."},
		func() float64 { return float64(t.queue.Queued()) })
	return t
}

// Enter waits for an organization's turn, which lasts until leave is
// called. The holder of a turn must not ask for a second one. A Problem
// 429 means that its share is used up, or that its turn did not come.
func (t *Turns) Enter(ctx context.Context, organization string) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, t.config.Wait)
	defer cancel()
	leave, err = t.queue.Acquire(waiting, organization)
	switch {
	case errors.Is(err, fair.ErrFull):
		return nil, t.refuse("Too many " + t.config.Asked + " of your organization wait for their turn. Send fewer at once.")
	case err != nil && ctx.Err() == nil:
		return nil, t.refuse("The " + t.config.Asked + " before yours take too long. Try again.")
	}
	return leave, err
}

func (t *Turns) refuse(detail string) error {
	t.refused.Inc()
	return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded", detail).RetryAfter(retryAfter)
}
