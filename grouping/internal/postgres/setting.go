package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// A Setting is what a project has set for its errors.
type Setting struct {
	Since time.Time // for errors accepted from then on
	Paths grouping.Paths
	// ArchiveDays is after how many days without an error a group is archived; 0: it never is.
	ArchiveDays int
	By          string // id of the member or API key
}

// maxSettings is how many settings of a project are kept, so that
// errors that are read again are counted as they were.
const maxSettings = 100

// Settings are those of projects, the earliest first.
type Settings map[Project][]Setting // bounded by the projects of a transaction

// Of are the paths for errors of a project that were accepted at a time.
func (s Settings) Of(project Project, accepted time.Time) grouping.Paths {
	for _, set := range slices.Backward(s[project]) {
		if !set.Since.After(accepted) {
			return set.Paths
		}
	}
	return grouping.DefaultPaths()
}

// FindSettings returns the settings of projects. tx must see these.
func FindSettings(ctx context.Context, tx pgx.Tx, projects []Project) (Settings, error) {
	if len(projects) == 0 {
		return nil, nil
	}
	organizations, names := projectColumns(distinct(projects))
	rows, err := tx.Query(ctx, `SELECT organization, project, since, paths, archive_days, actor FROM unnest($1::text[], $2::text[]) AS k (organization, project)
		JOIN error_settings USING (organization, project) ORDER BY since`, organizations, names)
	if err != nil {
		return nil, err
	}
	all := Settings{}
	var of Project
	var s Setting
	_, err = pgx.ForEachRow(rows, []any{&of.Organization, &of.Name, &s.Since, &s.Paths, &s.ArchiveDays, &s.By}, func() error {
		all[of] = append(all[of], s)
		s = Setting{}
		return nil
	})
	return all, err
}

// SaveSetting adds a setting of a project. tx must act as the organization.
func SaveSetting(ctx context.Context, tx pgx.Tx, organization pg.Organization, project string, s Setting) error {
	paths, err := json.Marshal(s.Paths)
	if err != nil {
		return fmt.Errorf("cannot encode paths: %w", err)
	}
	_, err = tx.Exec(ctx, `INSERT INTO error_settings (organization, project, since, paths, archive_days, actor) VALUES ($1, $2, $3, $4, $5, $6)`,
		organization, project, s.Since, paths, s.ArchiveDays, s.By)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM error_settings WHERE organization = $1 AND project = $2 AND since < (SELECT min(since) FROM
		(SELECT since FROM error_settings WHERE organization = $1 AND project = $2 ORDER BY since DESC LIMIT $3) kept)`, organization, project, maxSettings)
	return err
}

// LockSettings has those wait who would change settings of a project at the same time.
func LockSettings(ctx context.Context, tx pgx.Tx, organization pg.Organization, project string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir grouping settings ' || $1 || '/' || $2, 0))`, organization, storable(project))
	return err
}
