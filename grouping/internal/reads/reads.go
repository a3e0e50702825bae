// Package reads lets those who look at error groups take turns by organization: whoever asks most does not get most, and nobody
// takes the connections of the consumer.
package reads

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/fair"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of the line, and of a search.
const (
	waitingPerOrganization = 16
	waitingInAll           = 256
	longestWait            = 5 * time.Second
	comeBack               = 2 * time.Second // said to those who are refused
	longestSearch          = 2 * time.Second // then a page ends with what was found
)

// Config is what reads work with.
type Config struct {
	Pool    *pgxpool.Pool
	AtOnce  int // reads at work, at least 1; one organization has at most half of them, rounded up
	Clock   func() time.Time
	Metrics prometheus.Registerer
}

// Reads is safe for concurrent use.
type Reads struct {
	pool       *pgxpool.Pool
	clock      func() time.Time
	queue      *fair.Queue
	refused    prometheus.Counter
	incomplete prometheus.Counter
}

// New makes reads.
func New(config Config) *Reads {
	metrics := promauto.With(config.Metrics)
	r := &Reads{
		pool: config.Pool, clock: config.Clock,
		queue: fair.NewQueue(fair.Limits{Slots: config.AtOnce, PerKey: (config.AtOnce + 1) / 2, Waiting: waitingPerOrganization, Queued: waitingInAll}),
		refused: metrics.NewCounter(prometheus.CounterOpts{
			Name: "weir_grouping_reads_refused_total", Help: "Reads of groups that were refused because their organization had its share.",
		}),
		incomplete: metrics.NewCounter(prometheus.CounterOpts{
			Name: "weir_grouping_reads_incomplete_total", Help: "Pages of groups that ended because their time was over.",
		}),
	}
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_grouping_reads_running", Help: "Reads of groups at work."},
		func() float64 { return float64(r.queue.Held()) })
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_grouping_reads_waiting", Help: "Reads of groups that wait for their turn."},
		func() float64 { return float64(r.queue.Queued()) })
	return r
}

// As runs fn in a snapshot that sees the rows of organization alone, when it is the organization's turn. A Problem 429 says that
// its share is used up.
func (r *Reads) As(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
	leave, err := r.enter(ctx, organization)
	if err != nil {
		return err
	}
	defer leave()
	return pg.Snapshot(ctx, r.pool, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		return fn(tx, pg.Organization(organization))
	})
}

// Groups finds a page of groups. It ends with what was found when its time is over.
func (r *Reads) Groups(ctx context.Context, organization string, query postgres.GroupQuery) (page postgres.Page, err error) {
	err = r.As(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		ends := r.clock().Add(longestSearch)
		query.Enough = func() bool { return !r.clock().Before(ends) }
		page, err = postgres.Groups(ctx, tx, organization, query)
		return err
	})
	if page.Incomplete {
		r.incomplete.Inc()
	}
	return page, err
}

// enter waits for a place at work.
func (r *Reads) enter(ctx context.Context, organization string) (leave func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, longestWait)
	defer cancel()
	leave, err = r.queue.Acquire(waiting, organization)
	switch {
	case errors.Is(err, fair.ErrFull):
		return nil, r.refuse("Too many reads of your organization wait for their turn. Send fewer at once.")
	case err != nil && ctx.Err() == nil:
		return nil, r.refuse("The reads before yours take too long. Try again.")
	}
	return leave, err
}

func (r *Reads) refuse(detail string) error {
	r.refused.Inc()
	return httpapi.NewProblem(http.StatusTooManyRequests, "overloaded", detail).RetryAfter(comeBack)
}
