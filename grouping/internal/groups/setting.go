package groups

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Paths returns the settings of projects. The
// caller's transaction must see all organizations.
func (s *Service) Paths(ctx context.Context, tx pgx.Tx, projects []postgres.Project) (postgres.Settings, error) {
	return postgres.FindSettings(ctx, tx, projects)
}

// Numbers counts the errors of a group, and of what is merged into it, on the days from one instant to another. If there
// is none that the principal may read, the error is postgres.ErrNoGroup.
func (s *Service) Numbers(ctx context.Context, who identity.Principal, id string, from, to time.Time) (
	found postgres.Numbers, known grouping.Sights, err error,
) {
	err = s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) error {
		group, _, err := postgres.FindGroup(ctx, tx, organization, id)
		if err == nil && !s.mayRead(who, group.Project) {
			err = postgres.ErrNoGroup
		}
		if err != nil {
			return err
		}
		if known, err = postgres.FindReleases(ctx, tx, postgres.Project{Organization: string(organization), Name: group.Project}); err != nil {
			return err
		}
		found, err = postgres.FindNumbers(ctx, tx, organization, []string{group.ID}, from, to)
		return err
	})
	return found, known, err
}

// settledAfter is how long after a change of a setting all consumers know of it.
const settledAfter = 5 * time.Second

// Setting returns the last setting of a project; zero: it has none.
func (s *Service) Setting(ctx context.Context, organization, project string) (set postgres.Setting, err error) {
	err = s.read(ctx, organization, func(tx pgx.Tx, organization pg.Organization) error {
		set, err = setting(ctx, tx, organization, project)
		return err
	})
	return set, err
}

func setting(ctx context.Context, tx pgx.Tx, organization pg.Organization, project string) (set postgres.Setting, err error) {
	of := postgres.Project{Organization: string(organization), Name: project}
	all, err := postgres.FindSettings(ctx, tx, []postgres.Project{of})
	if n := len(all[of]); n > 0 {
		return all[of][n-1], err
	}
	return postgres.Setting{Paths: grouping.DefaultPaths()}, err
}

// Set changes the settings of a project. Paths hold for errors that are
// accepted from now on. ifSince refuses another present setting than that from then; nil: none.
func (s *Service) Set(ctx context.Context, request Request, project string, to postgres.Setting, ifSince *time.Time) (postgres.Setting, error) {
	answer, err := once(ctx, s, request, []any{project, to, ifSince}, func(tx pgx.Tx) (made answer[postgres.Setting], err error) {
		if err := errors.Join(to.Paths.Check(), grouping.CheckArchiveDays(to.ArchiveDays)); err != nil {
			return made, err
		}
		organization := pg.Organization(request.Who.Organization)
		if err := postgres.LockSettings(ctx, tx, organization, project); err != nil {
			return made, err
		}
		last, err := setting(ctx, tx, organization, project)
		switch {
		case err != nil:
			return made, err
		case ifSince != nil && !ifSince.Equal(last.Since):
			return made, ErrSettingsChanged
		case samePaths(last.Paths, to.Paths) && last.ArchiveDays == to.ArchiveDays:
			return answerOf(project, last), nil
		}
		set := postgres.Setting{Since: s.settled(last.Since), Paths: to.Paths, ArchiveDays: to.ArchiveDays, By: request.By.ID}
		return answerOf(project, set), postgres.SaveSetting(ctx, tx, organization, project, set)
	})
	return answer.Body, err
}

// ErrSettingsChanged means that somebody else has changed settings meanwhile.
var ErrSettingsChanged = errors.New("the settings were changed meanwhile")

// settled is from when on a change of settings holds, after the one before.
func (s *Service) settled(last time.Time) time.Time {
	return s.since(last.Add(-settledAfter)).Add(settledAfter)
}

// since is now, or just after the change before.
func (s *Service) since(last time.Time) time.Time {
	if now := s.Clock().UTC().Truncate(time.Microsecond); now.After(last) {
		return now
	}
	return last.Add(time.Microsecond)
}

func answerOf[T any](project string, body T) answer[T] { return answer[T]{project, body} }

func samePaths(a, b grouping.Paths) bool {
	return slices.Equal(a.Release, b.Release) && slices.Equal(a.Service, b.Service) && slices.Equal(a.User, b.User) && slices.Equal(a.Host, b.Host)
}
