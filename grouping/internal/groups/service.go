package groups

import (
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/replica"
)

// A Service groups errors and serves the
// groups. It is safe for concurrent use.
type Service struct {
	Config
	limiter    *httpapi.Limiter
	incomplete prometheus.Counter
}

// Config is what a Service needs.
type Config struct {
	NewGroups   grouping.Budgets // that the errors of one hour may create
	Projects    *identity.Directory
	Reads       *pgxpool.Pool   // for requests, so that they take no connection of the consumer
	Replica     *replica.Reader // for the same; nil: there is none
	Concurrency int             // concurrent reads, at least 1; one organization has at most half of them, rounded up
	Clock       func() time.Time
	Metrics     prometheus.Registerer
}

// New makes a service.
func New(config Config) *Service {
	return &Service{
		Config:  config,
		limiter: httpapi.NewLimiter(httpapi.LimiterConfig{Slots: config.Concurrency, Module: "weir_grouping", Noun: "reads"}, config.Metrics),
		incomplete: promauto.With(config.Metrics).NewCounter(prometheus.CounterOpts{
			Name: "weir_grouping_reads_incomplete_total", Help: "Pages of groups that ended because their time was over.",
		}),
	}
}
