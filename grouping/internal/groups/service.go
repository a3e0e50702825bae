package groups

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/replica"
)

// A Service has the use cases by noun. It is safe for concurrent use.
type Service struct {
	Errors     *Errors
	Groups     *Groups
	Decisions  *Decisions
	Merges     *Merges
	Owners     *Owners
	Rules      *Rules
	Settings   *Settings
	Alerts     *Alerts
	SourceMaps *SourceMaps

	Occurrences *Occurrences
}

// Config is what a Service needs.
type Config struct {
	NewGroups   grouping.Budgets // that the errors of one hour may create
	Projects    *identity.Directory
	Pool        *pgxpool.Pool // for changes
	Announce    Announce
	Report      Report
	Send        Send
	Read        ReadEntry
	MaxAlerts   int             // of a project
	Reads       *pgxpool.Pool   // for reads, so that they take no connection of the consumer
	Replica     *replica.Reader // for the same; nil: there is none
	Concurrency int             // concurrent reads, at least 1; one organization has at most half of them, rounded up
	Clock       func() time.Time
	Metrics     prometheus.Registerer
}

// New makes a service.
func New(config Config) *Service {
	db := &store{
		pool: config.Pool, reads: config.Reads, replica: config.Replica, projects: config.Projects, clock: config.Clock, report: config.Report,
		limiter: httpapi.NewLimiter(httpapi.LimiterConfig{Slots: config.Concurrency, Module: "weir_grouping", Noun: "reads"}, config.Metrics),
	}
	rules := postgres.NewRuleBook()
	return &Service{
		Errors:     &Errors{Rules: rules, newGroups: config.NewGroups, clock: config.Clock},
		Groups:     &Groups{db: db, incomplete: incompletePages(config.Metrics)},
		Decisions:  &Decisions{db: db, announce: config.Announce},
		Merges:     &Merges{db: db, announce: config.Announce},
		Owners:     &Owners{db: db, announce: config.Announce},
		Rules:      &Rules{db: db, book: rules},
		Settings:   &Settings{db: db},
		Alerts:     &Alerts{db: db, send: config.Send, limit: config.MaxAlerts, late: lateAlerts(config.Metrics)},
		SourceMaps: &SourceMaps{db: db, announce: config.Announce, rules: rules, uploads: httpapi.NewLimiter(uploadsAtOnce, config.Metrics)},

		Occurrences: &Occurrences{db: db, book: rules, read: config.Read, selections: httpapi.NewLimiter(selectionsAtOnce, config.Metrics)},
	}
}

// Announce tells others of decisions, at the end of their transaction.
type Announce func(ctx context.Context, tx pgx.Tx, changes []postgres.Change) error

// record keeps decisions and announces them.
func (a Announce) record(ctx context.Context, tx pgx.Tx, made []*postgres.DecidedGroup, by postgres.Author) error {
	changed, err := postgres.Record(ctx, tx, made, by)
	if err != nil {
		return err
	}
	return a(ctx, tx, changed)
}

// A Request is one that changes something.
type Request struct {
	Who identity.Principal
	By  postgres.Author
	Key string // Idempotency-Key; empty: none
}
