package groups

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/replica"
)

// A Service groups errors and serves the
// groups. It is safe for concurrent use.
type Service struct {
	Config
	limiter    *httpapi.Limiter
	uploads    *httpapi.Limiter // of source maps
	incomplete prometheus.Counter
	late       prometheus.Gauge // messages of alerts
	rules      *postgres.RuleBook
	patient    atomic.Int64 // until then writers wait for those who merge, in nanoseconds
}

// Config is what a Service needs.
type Config struct {
	NewGroups   grouping.Budgets // that the errors of one hour may create
	Projects    *identity.Directory
	Pool        *pgxpool.Pool   // for decisions
	Announce    Announce        // tells others of decisions
	Tell        Tell            // hands on what alerts tell
	MaxAlerts   int             // of a project
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
		late:    lateAlerts(config.Metrics),
		limiter: httpapi.NewLimiter(httpapi.LimiterConfig{Slots: config.Concurrency, Module: "weir_grouping", Noun: "reads"}, config.Metrics),
		rules:   postgres.NewRuleBook(),
		uploads: httpapi.NewLimiter(uploadsAtOnce, config.Metrics),
		incomplete: promauto.With(config.Metrics).NewCounter(prometheus.CounterOpts{
			Name: "weir_grouping_reads_incomplete_total", Help: "Pages of groups that ended because their time was over.",
		}),
	}
}

// Announce tells others of decisions, at the end of their transaction.
type Announce func(ctx context.Context, tx pgx.Tx, changes []postgres.Change) error

// A Detail is a group with its samples, why it is
// one, and similar groups, the most alike first.
type Detail struct {
	Group       postgres.Group
	Why         postgres.Explanation
	Members     []postgres.Group // that were merged into it, with their own numbers
	Occurrences []postgres.Occurrence
	Similar     []Similar
}

// Group finds a group. If there is none that the
// principal may read, the error is postgres.ErrNoGroup.
func (s *Service) Group(ctx context.Context, who identity.Principal, id string) (found Detail, err error) {
	var alike postgres.Candidates
	err = s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		if found.Group, found.Why, err = postgres.FindGroup(ctx, tx, organization, id); err != nil {
			return err
		}
		if !s.mayRead(who, found.Group.Project) {
			return postgres.ErrNoGroup
		}
		id = found.Group.ID // the head's, perhaps
		if found.Members, err = postgres.FindMembers(ctx, tx, organization, id); err != nil {
			return err
		}
		if found.Occurrences, err = postgres.Occurrences(ctx, tx, organization, id); err != nil {
			return err
		}
		alike, err = postgres.Similar(ctx, tx, organization, id)
		return err
	})
	found.Similar = rank(alike)
	return found, err
}

// Find finds a group without what explains it. If there is none that the
// principal may read, the error is postgres.ErrNoGroup.
func (s *Service) Find(ctx context.Context, who identity.Principal, id string) (found postgres.Group, err error) {
	err = s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		found, _, err = postgres.FindGroup(ctx, tx, organization, id)
		if err == nil && !s.mayRead(who, found.Project) {
			err = postgres.ErrNoGroup
		}
		return err
	})
	return found, err
}

// mayRead reports whether the principal may read a project's
// groups. Nobody may once its deletion is requested.
func (s *Service) mayRead(who identity.Principal, project string) bool {
	return who.ReadsProject(project) && !s.Projects.Hides(who.Organization, project)
}

// timeUp returns a function that reports whether span has passed.
func (s *Service) timeUp(span time.Duration) func() bool {
	ends := s.Clock().Add(span)
	return func() bool { return !s.Clock().Before(ends) }
}

// Groups finds a page of groups. After
// maxSearchTime it ends with what was found.
func (s *Service) Groups(ctx context.Context, organization string, query postgres.GroupQuery) (page postgres.Page, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		query.Now = s.Clock()
		query.Hidden, query.TimeUp = slices.Collect(maps.Keys(s.Projects.Hidden(string(organization)))), s.timeUp(maxSearchTime)
		if page, err = postgres.Groups(ctx, tx, organization, query); err != nil {
			return err
		}
		page.Recent, err = postgres.FindRecent(ctx, tx, organization, page.IDs(), s.Clock())
		return err
	})
	if page.Incomplete {
		s.incomplete.Inc()
	}
	return page, err
}

// Learned returns what was learned of those projects of which something
// was. The caller's transaction must see all organizations.
func (s *Service) Learned(ctx context.Context, tx pgx.Tx, projects []postgres.Project) (map[postgres.Project]grouping.Learned, error) {
	if until := s.patient.Load(); until > 0 && s.Clock().UnixNano() < until {
		organizations := make([]string, len(projects))
		for i, p := range projects {
			organizations[i] = p.Organization
		}
		if err := postgres.AwaitMerges(ctx, tx, organizations); err != nil {
			return nil, err
		}
	}
	return postgres.FindLearned(ctx, tx, projects)
}

// patience is how long writers wait for those who merge, once that made one start over.
const patience = 10 * time.Second

// Count adds errors to their groups and creates groups as far as the
// budgets allow. The caller's transaction must see all organizations.
func (s *Service) Count(ctx context.Context, tx pgx.Tx, tally *grouping.Tally) (postgres.Effect, error) {
	effect, err := postgres.Writer{NewGroups: s.NewGroups, Clock: s.Clock, Rules: s.rules}.Apply(ctx, tx, tally.Counts())
	if errors.Is(err, postgres.ErrMoved) {
		s.patient.Store(s.Clock().Add(patience).UnixNano())
	}
	return effect, err
}

// maxSearchTime ends the page of a long search.
const maxSearchTime = 2 * time.Second

// read runs fn in a snapshot of the organization's rows. Organizations take
// turns. A Problem 429 means that the organization's share is used up.
func (s *Service) read(ctx context.Context, organization string, fn func(tx pgx.Tx, organization pg.Organization) error) error {
	release, err := s.limiter.Acquire(ctx, organization)
	if err != nil {
		return err
	}
	defer release()
	return s.Replica.Snapshot(ctx, s.Reads, func(tx pgx.Tx) error {
		if err := pg.AsOrganization(ctx, tx, pg.Organization(organization)); err != nil {
			return err
		}
		return fn(tx, pg.Organization(organization))
	})
}

// Similar is a group that may have the same fault.
type Similar struct {
	Group      postgres.Group
	Similarity float64  // from 0 to 1
	OnlyHere   []string // calls of the other group that this one lacks
	OnlyThere  []string
}

// Similar finds the groups most like one. If the principal
// may not read it, the error is postgres.ErrNoGroup.
func (s *Service) Similar(ctx context.Context, who identity.Principal, id string) ([]Similar, error) {
	var alike postgres.Candidates
	err := s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		alike, err = postgres.Similar(ctx, tx, organization, id)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !s.mayRead(who, alike.Of.Project):
		return nil, postgres.ErrNoGroup
	}
	return rank(alike), nil
}

// rank sorts groups by similarity, and adds differing calls.
func rank(alike postgres.Candidates) []Similar {
	of, ranked := alike.Of, []Similar(nil)
	for _, other := range alike.Others {
		similarity := of.Outline.Similarity(other.Outline, alike.Rarity)
		if here, there := of.Outline.Differences(other.Outline); similarity >= grouping.MinSimilarity {
			ranked = append(ranked, Similar{Group: other.Group, Similarity: similarity, OnlyHere: here, OnlyThere: there})
		}
	}
	slices.SortStableFunc(ranked, func(a, b Similar) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), b.Group.LastSeen.Compare(a.Group.LastSeen), cmp.Compare(a.Group.ID, b.Group.ID))
	})
	return ranked[:min(len(ranked), grouping.MaxSimilar)]
}
