package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// An Archiving is a project whose quiet groups are archived.
type Archiving struct {
	Project
	Days int // without an error
}

// FindArchiving returns the projects that have groups archived. tx must act as the system.
func FindArchiving(ctx context.Context, tx pgx.Tx) ([]Archiving, error) {
	rows, err := tx.Query(ctx, `SELECT organization, project, archive_days FROM (SELECT DISTINCT ON (organization, project) organization, project, archive_days
		FROM error_settings ORDER BY organization, project, since DESC) last WHERE archive_days > 0 ORDER BY organization, project`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Archiving, err error) {
		return a, row.Scan(&a.Organization, &a.Name, &a.Days)
	})
}

// archiveBatch is how many groups one transaction archives: its turn to
// append makes others wait.
const archiveBatch = 25

// ArchiveQuiet archives the next groups of a project, behind a place in the
// order of their last errors, and returns the last place; zero: all are done. tx must act as the system.
func ArchiveQuiet(ctx context.Context, tx pgx.Tx, of Archiving, behind GroupCursor, now time.Time) (changed []Change, last GroupCursor, err error) {
	before := grouping.QuietSince(of.Days, now).UTC()
	quiet, err := readGroups(ctx, tx, `organization = $1 AND project = $2 AND merged_into = '' AND seen_minute < $3 AND (seen_minute, id) > ($4, $5)
		   AND status = 'unresolved' AND last_seen < $3 AND arrived < $3::date AND version < $6 AND coalesce((decided->>'since')::timestamptz, '-infinity') < $3
		 ORDER BY seen_minute, id LIMIT $7 FOR UPDATE SKIP LOCKED`,
		of.Organization, of.Name, before, minute(behind.LastSeen), behind.ID, grouping.MaxDecisions, archiveBatch)
	if err != nil || len(quiet) == 0 {
		return nil, GroupCursor{}, err
	}
	var made []*DecidedGroup
	for _, m := range quiet {
		last = m.Group.Cursor()
		if d, follows := m.Group.State.Quiet(m.Group.LastSeen, m.Group.Version, of.Days, now); follows {
			m.Decisions = []grouping.Decision{d}
			made = append(made, m)
		}
	}
	changed, err = Record(ctx, tx, made, Author{})
	return changed, last, err
}
