package groups

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/pg"
)

// Settings are what projects have set for their errors.
type Settings struct{ db *store }

// settledAfter is how long after a change of a setting all consumers know of it.
const settledAfter = 5 * time.Second

// Find returns the last setting of a project; zero: it has none.
func (s *Settings) Find(ctx context.Context, organization, project string) (postgres.Setting, error) {
	return read(ctx, s.db, organization, func(tx pgx.Tx, organization pg.Organization) (postgres.Setting, error) {
		return setting(ctx, tx, organization, project)
	})
}

func setting(ctx context.Context, tx pgx.Tx, organization pg.Organization, project string) (postgres.Setting, error) {
	of := postgres.Project{Organization: string(organization), Name: project}
	all, err := postgres.FindSettings(ctx, tx, []postgres.Project{of})
	if n := len(all[of]); n > 0 {
		return all[of][n-1], err
	}
	return postgres.Setting{Paths: grouping.DefaultPaths()}, err
}

// Set changes the settings of a project. Paths hold for errors that are
// accepted from now on. ifSince refuses another present setting than that from then; nil: none.
func (s *Settings) Set(ctx context.Context, request Request, project string, to postgres.Setting, ifSince *time.Time) (postgres.Setting, error) {
	return once(ctx, s.db, request, []any{project, to, ifSince}, func(tx pgx.Tx) (string, postgres.Setting, error) {
		if err := errors.Join(to.Paths.Check(), grouping.CheckArchiveDays(to.ArchiveDays)); err != nil {
			return project, to, err
		}
		organization := pg.Organization(request.Who.Organization)
		if err := postgres.LockSettings(ctx, tx, organization, project); err != nil {
			return project, to, err
		}
		last, err := setting(ctx, tx, organization, project)
		switch {
		case err != nil:
			return project, last, err
		case ifSince != nil && !ifSince.Equal(last.Since):
			return project, last, ErrSettingsChanged
		case samePaths(last.Paths, to.Paths) && last.ArchiveDays == to.ArchiveDays:
			return project, last, nil
		}
		since := s.db.after(last.Since.Add(-settledAfter)).Add(settledAfter)
		set := postgres.Setting{Since: since, Paths: to.Paths, ArchiveDays: to.ArchiveDays, By: request.By.ID}
		if err := postgres.SaveSetting(ctx, tx, organization, project, set); err != nil {
			return project, set, err
		}
		return project, set, s.db.tell(ctx, tx, request, project, Change{Action: settingsSet, Before: settingFields(last), After: settingFields(set)})
	})
}

func settingFields(of postgres.Setting) Fields {
	said := Fields{}
	for name, paths := range of.Paths.Each() {
		said[name] = strings.Join(*paths, ", ")
	}
	if of.ArchiveDays > 0 {
		said["archived_after_days"] = strconv.Itoa(of.ArchiveDays)
	}
	return said
}

// ErrSettingsChanged means that somebody else has changed settings meanwhile.
var ErrSettingsChanged = errors.New("the settings were changed meanwhile")

// after is now, or just after the change before.
func (s *store) after(last time.Time) time.Time {
	if now := s.now(); now.After(last) {
		return now
	}
	return last.Add(time.Microsecond)
}

func samePaths(a, b grouping.Paths) bool {
	return slices.Equal(a.Release, b.Release) && slices.Equal(a.Service, b.Service) && slices.Equal(a.User, b.User) && slices.Equal(a.Host, b.Host)
}
