package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/former"
)

// scopeInherited marks deciding hashes of
// groups that a former version created.
const scopeInherited grouping.HashScope = "inherited"

// inheritedGroups are those that a former version of the
// algorithm created, by deciding hash.
type inheritedGroups map[hashKey]string

// findInherited finds groups of counts without a known hash by the
// hashes of former versions. Only new errors cost that, and only
// in a project with groups of a former version: a group with a
// current hash is found like any other. Where several counts share
// a deciding hash, the first that has a group decides for all.
func findInherited(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (inheritedGroups, error) {
	projects := projectsOf(counts)
	oldest, err := findOldest(ctx, tx, projects)
	if err != nil {
		return nil, err
	}
	taught, err := findFormer(ctx, tx, projects)
	if err != nil || len(oldest)+len(taught) == 0 {
		return inheritedGroups{}, err
	}
	hashes, rows := formerHashes(counts, oldest, taught)
	known, err := findHashes(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	found := inheritedGroups{}
	for i, c := range counts {
		key := keyOf(c, c.Deciding())
		for _, p := range hashes[i] {
			if group, ok := known[keyOf(c, p)]; ok && found[key] == "" {
				found[key] = group
			}
		}
	}
	return found, nil
}

// formerHashes returns the hashes of each count, and all as rows. Each
// version, and each set of libraries, costs as much as today's: a flood
// of new kinds computes only those since its project's oldest group.
func formerHashes(counts []*grouping.Count, oldest map[Project]int, taught map[Project]learned) (hashes [][]grouping.ScopedHash, rows []hashRow) {
	var versions former.Grouper
	var g grouping.Grouper
	hashes = make([][]grouping.ScopedHash, len(counts))
	for i, c := range counts {
		if version, ok := oldest[projectOf(c)]; ok {
			hashes[i] = versions.Hashes(c.Samples[0].Error, version)
		}
		hashes[i] = append(hashes[i], taught[projectOf(c)].hashes(&g, c)...)
		rows = appendRows(rows, c, hashes[i])
	}
	return hashes, rows
}

// projectsOf are the projects of counts, each once.
func projectsOf(counts []*grouping.Count) (projects []Project) {
	for _, c := range counts {
		projects = append(projects, projectOf(c))
	}
	return distinct(projects)
}

// findOldest returns the oldest version of
// projects with groups of a former one.
func findOldest(ctx context.Context, tx pgx.Tx, projects []Project) (map[Project]int, error) {
	if len(projects) == 0 {
		return nil, nil
	}
	organizations, names := projectColumns(projects)
	rows, err := tx.Query(ctx, oldestOfProjects, organizations, names, grouping.OverflowVersion, grouping.Version)
	if err != nil {
		return nil, err
	}
	oldest := map[Project]int{}
	var p Project
	var version int
	_, err = pgx.ForEachRow(rows, []any{&p.Organization, &p.Name, &version}, func() error { oldest[p] = version; return nil })
	return oldest, err
}

// oldestOfProjects reads one entry of the primary
// key for each project, however many hashes it has.
const oldestOfProjects = `
SELECT k.organization, k.project, oldest.version
  FROM unnest($1::text[], $2::text[]) AS k (organization, project)
 CROSS JOIN LATERAL (SELECT version FROM group_hashes h
		WHERE (h.organization, h.project) = (k.organization, k.project) AND h.version > $3 ORDER BY h.version LIMIT 1) AS oldest
 WHERE oldest.version < $4`

// claim maps the deciding hashes to their groups, as far as these
// have room, and adds them to known; others are inherited again next
// time. Where another transaction was faster, its group counts.
func (h inheritedGroups) claim(ctx context.Context, tx pgx.Tx, known map[hashKey]string) error {
	var rows []hashRow
	for key, group := range h {
		rows = append(rows, hashRow{key, scopeInherited, group})
	}
	slices.SortFunc(rows, hashRow.order)
	claimed, err := claimRoom(ctx, tx, scopeInherited, rows)
	if err != nil {
		return fmt.Errorf("cannot inherit: %w", err)
	}
	lost := slices.DeleteFunc(rows, func(r hashRow) bool { return claimed[r.hashKey] != "" })
	joined, err := findHashes(ctx, tx, lost)
	if err != nil {
		return err
	}
	maps.Copy(known, h)
	maps.Copy(known, joined)
	return nil
}
