package service

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/fair"
	"github.com/weirlog/weir/shared/identity"
)

// A Service groups errors, and answers for the groups. It is safe for concurrent use.
type Service struct {
	Config
	queue      *fair.Queue
	refused    prometheus.Counter
	incomplete prometheus.Counter
}

// Config is what a Service works with.
type Config struct {
	NewGroups grouping.Budgets // that the errors of one hour may create
	Projects  *identity.Directory
	Reads     *pgxpool.Pool // for those who ask: they don't take the consumer's connections
	AtOnce    int           // how many read at once, at least 1; one organization has at most half of them, rounded up
	Clock     func() time.Time
	Metrics   prometheus.Registerer
}

// New makes a service.
func New(config Config) *Service {
	metrics := promauto.With(config.Metrics)
	s := &Service{
		Config: config,
		queue:  fair.NewQueue(fair.Limits{Slots: config.AtOnce, PerKey: (config.AtOnce + 1) / 2, Waiting: waitingPerOrganization, Queued: waitingInAll}),
		refused: metrics.NewCounter(prometheus.CounterOpts{
			Name: "weir_grouping_reads_refused_total", Help: "Reads of groups that were refused because their organization had its share.",
		}),
		incomplete: metrics.NewCounter(prometheus.CounterOpts{
			Name: "weir_grouping_reads_incomplete_total", Help: "Pages of groups that ended because their time was over.",
		}),
	}
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_grouping_reads_running", Help: "Reads of groups at work."},
		func() float64 { return float64(s.queue.Held()) })
	metrics.NewGaugeFunc(prometheus.GaugeOpts{Name: "weir_grouping_reads_waiting", Help: "Reads of groups that wait for their turn."},
		func() float64 { return float64(s.queue.Queued()) })
	return s
}
