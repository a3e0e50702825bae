package groups

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// A Detail is a group with its samples, why it is
// one, and similar groups, the most alike first.
type Detail struct {
	Group       postgres.Group
	Why         postgres.Explanation
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
		if found.Occurrences, err = postgres.Occurrences(ctx, tx, organization, id); err != nil {
			return err
		}
		alike, err = postgres.Similar(ctx, tx, organization, id)
		return err
	})
	found.Similar = rank(alike)
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
		query.Hidden, query.TimeUp = slices.Collect(maps.Keys(s.Projects.Hidden(string(organization)))), s.timeUp(maxSearchTime)
		page, err = postgres.Groups(ctx, tx, organization, query)
		return err
	})
	if page.Incomplete {
		s.incomplete.Inc()
	}
	return page, err
}
