package postgres

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of what is known of releases.
const (
	maxReleases    = 500 // of a project and its environments, those seen last
	maxNewReleases = 100 // that one transaction may add to a project
)

// releaseKey is a release in an environment.
type releaseKey struct {
	Project
	environment, release string
}

func (k releaseKey) order(other releaseKey) int {
	return cmp.Or(cmp.Compare(k.Organization, other.Organization), cmp.Compare(k.Name, other.Name), cmp.Compare(k.environment, other.environment),
		cmp.Compare(k.release, other.release))
}

// saveReleases notes when releases were first accepted. Mostly all are known
// and have been seen on the day, so that no row is locked.
func saveReleases(ctx context.Context, tx pgx.Tx, changes []*change) error {
	first := firstSights(changes)
	if len(first) == 0 {
		return nil
	}
	keys := make([]releaseKey, 0, len(first))
	for key := range first {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, releaseKey.order)
	var organizations, projects, environments, releases []string
	var times []time.Time
	for _, k := range keys {
		organizations, projects = append(organizations, k.Organization), append(projects, k.Name)
		environments, releases, times = append(environments, k.environment), append(releases, k.release), append(times, first[k])
	}
	rows, err := tx.Query(ctx, `
		INSERT INTO releases AS r (organization, project, environment, release, first_seen, seen)
		SELECT organization, project, environment, release, at, (at AT TIME ZONE 'UTC')::date
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[]) WITH ORDINALITY AS k (organization, project, environment, release, at, n)
		  LEFT JOIN releases known USING (organization, project, environment, release)
		 WHERE known.seen IS NULL OR at < known.first_seen OR (at AT TIME ZONE 'UTC')::date > known.seen
		 ORDER BY n
		ON CONFLICT (organization, project, environment, release) DO UPDATE
		   SET first_seen = least(r.first_seen, excluded.first_seen), seen = greatest(r.seen, excluded.seen)
		RETURNING organization, project, xmax = 0`, organizations, projects, environments, releases, times)
	if err != nil {
		return err
	}
	grown := map[Project]bool{} // bounded by the projects of a transaction
	var of Project
	var added bool
	_, err = pgx.ForEachRow(rows, []any{&of.Organization, &of.Name, &added}, func() error {
		if added {
			grown[of] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	return forgetReleases(ctx, tx, grown)
}

// firstSights are when releases were first accepted in this transaction.
func firstSights(changes []*change) map[releaseKey]time.Time {
	first := map[releaseKey]time.Time{} // bounded by maxNewReleases of each project of a transaction
	perProject := map[Project]int{}     // bounded by the projects of a transaction
	for _, ch := range changes {
		for _, s := range ch.Seen {
			if s.Release == "" {
				continue
			}
			key := releaseKey{projectOf(ch.Count), storable(s.Environment), storable(s.Release)}
			at, again := first[key]
			if !again {
				if perProject[key.Project]++; perProject[key.Project] > maxNewReleases {
					continue
				}
			}
			if !again || s.Accepted.Before(at) {
				first[key] = s.Accepted
			}
		}
	}
	return first
}

// forgetReleases keeps projects within their bound.
func forgetReleases(ctx context.Context, tx pgx.Tx, of map[Project]bool) error {
	for project := range of {
		_, err := tx.Exec(ctx, `DELETE FROM releases WHERE ctid = ANY (ARRAY(SELECT ctid FROM releases
			WHERE organization = $1 AND project = $2 ORDER BY seen DESC, first_seen DESC, environment, release OFFSET $3))`,
			project.Organization, project.Name, maxReleases)
		if err != nil {
			return err
		}
	}
	return nil
}

// FindReleases returns the known releases of a project. tx must
// act as its organization or as the system.
func FindReleases(ctx context.Context, tx pgx.Tx, of Project) (grouping.SeenReleases, error) {
	rows, err := tx.Query(ctx, `SELECT environment, release, first_seen FROM releases WHERE organization = $1 AND project = $2
		ORDER BY first_seen, environment, release`, of.Organization, of.Name)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (s grouping.SeenRelease, err error) {
		return s, row.Scan(&s.Environment, &s.Release, &s.First)
	})
}

// deploys are the last releases of projects, and when they were first seen.
type deploys struct {
	projects, releases []string
	since              []time.Time
}

// findDeploys looks up what is new since when.
func (q *GroupQuery) findDeploys(ctx context.Context, tx pgx.Tx, organization pg.Organization) error {
	if !q.NewSince {
		return nil
	}
	rows, err := tx.Query(ctx, `SELECT DISTINCT ON (project) project, release, first_seen FROM releases
		WHERE organization = $1 AND ($2 = '' OR project = $2) AND (cardinality($3::text[]) = 0 OR environment = ANY ($3))
		ORDER BY project, first_seen DESC, environment, release`, organization, q.Project, append([]string{}, q.Environments...))
	if err != nil {
		return err
	}
	var d deploys
	var project, release string
	var since time.Time
	_, err = pgx.ForEachRow(rows, []any{&project, &release, &since}, func() error {
		d.projects, d.releases, d.since = append(d.projects, project), append(d.releases, release), append(d.since, since)
		return nil
	})
	q.deploys = d
	return err
}
