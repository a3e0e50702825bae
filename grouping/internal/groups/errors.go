package groups

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/grouping/trace"
)

// Errors groups errors, in transactions of the
// consumer, which must see all organizations.
type Errors struct {
	Rules     *postgres.RuleBook
	newGroups grouping.Budgets
	clock     func() time.Time
	waitUntil atomic.Int64 // until then writers wait for merges, in nanoseconds
}

// mergeWait is how long writers wait for merges, once one made them start over.
const mergeWait = 10 * time.Second

// Learned returns what was learned of those projects of which something was.
func (e *Errors) Learned(ctx context.Context, tx pgx.Tx, projects []postgres.Project) (map[postgres.Project]grouping.Learned, error) {
	if until := e.waitUntil.Load(); until > 0 && e.clock().UnixNano() < until {
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

// Count adds errors to their groups and creates groups as far as the budgets allow.
func (e *Errors) Count(ctx context.Context, tx pgx.Tx, tally *grouping.Tally) (postgres.Effect, error) {
	effect, err := postgres.Writer{NewGroups: e.newGroups, Clock: e.clock, Rules: e.Rules}.Apply(ctx, tx, tally.Counts())
	if errors.Is(err, postgres.ErrMoved) {
		e.waitUntil.Store(e.clock().Add(mergeWait).UnixNano())
	}
	return effect, err
}

// Map finds where the calls of errors were written, in projects that have source maps.
func (*Errors) Map(ctx context.Context, tx pgx.Tx, errs []grouping.Occurrence) error {
	mapper, err := mapErrors(ctx, tx, errs)
	if err != nil {
		return err
	}
	return mapper.Use(ctx, tx)
}

// mapErrors finds where the calls of errors were written, and writes nothing.
func mapErrors(ctx context.Context, tx pgx.Tx, errs []grouping.Occurrence) (*postgres.Mapper, error) {
	var g grouping.Grouper
	mapper, places := postgres.NewMapper(), make([][]trace.Place, len(errs))
	for i, o := range errs {
		if !o.Error.Learned.Maps {
			continue
		}
		places[i] = g.Places(o.Error)
		mapper.Ask(projectOf(o), buildOf(o), o.Accepted, places[i])
	}
	if err := mapper.Find(ctx, tx); err != nil {
		return nil, err
	}
	for i, o := range errs {
		if len(places[i]) > 0 {
			errs[i].Error.Mapping = mapper.Mapping(projectOf(o), buildOf(o), o.Accepted, places[i])
		}
	}
	return mapper, nil
}

func projectOf(o grouping.Occurrence) postgres.Project {
	return postgres.Project{Organization: o.Organization, Name: o.Project}
}

func buildOf(o grouping.Occurrence) postgres.Build {
	return postgres.Build{Release: grouping.KnownRelease(o.Release), DebugIDs: o.DebugIDs}
}
