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

// scopeInherited marks deciding hashes of groups that a former version created.
const scopeInherited grouping.HashScope = "inherited"

// heirs are the deciding hashes of groups that a former version
// of the algorithm created.
type heirs map[hashKey]string

// findHeirs finds groups of counts without a known hash by the hashes
// of former versions. Only new errors cost that, and only in a project
// with groups of a former version: a group with a current hash is
// found like any other. The first of several counts with one deciding
// hash that has a group brings all there.
func findHeirs(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (heirs, error) {
	counts, err := amongFormer(ctx, tx, counts)
	if err != nil || len(counts) == 0 {
		return heirs{}, err
	}
	var g former.Grouper
	var rows []hashRow
	hashes := make([][]grouping.ScopedHash, len(counts))
	for i, c := range counts {
		hashes[i] = g.Hashes(c.Samples[0].Error)
		rows = appendRows(rows, c, hashes[i])
	}
	known, err := findHashes(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	found := heirs{}
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

// amongFormer returns the counts of projects with groups of a
// former version. A second fingerprint costs as much as the first:
// a flood of new kinds must not pay it in vain.
func amongFormer(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) ([]*grouping.Count, error) {
	type project struct{ organization, name string }
	asked, has := map[project]bool{}, map[project]bool{}
	var organizations, projects []string
	for _, c := range counts {
		if p := (project{c.Organization, c.Project}); !asked[p] {
			asked[p] = true
			organizations, projects = append(organizations, p.organization), append(projects, p.name)
		}
	}
	if len(asked) == 0 {
		return nil, nil
	}
	rows, err := tx.Query(ctx, projectsOfFormer, organizations, projects, grouping.OverflowVersion, grouping.Version)
	if err != nil {
		return nil, err
	}
	var p project
	if _, err := pgx.ForEachRow(rows, []any{&p.organization, &p.name}, func() error { has[p] = true; return nil }); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(counts), func(c *grouping.Count) bool { return !has[project{c.Organization, c.Project}] }), nil
}

// projectsOfFormer reads one entry of the primary key for each
// project, however many hashes it has.
const projectsOfFormer = `
SELECT k.organization, k.project
  FROM unnest($1::text[], $2::text[]) AS k (organization, project)
 CROSS JOIN LATERAL (SELECT version FROM group_hashes h
		WHERE (h.organization, h.project) = (k.organization, k.project) AND h.version > $3 ORDER BY h.version LIMIT 1) AS oldest
 WHERE oldest.version < $4`

// claim lets the deciding hashes name their groups, as far as these have room,
// and adds them to known; the others are inherited again next time. Where
// another transaction was faster, its group counts.
func (h heirs) claim(ctx context.Context, tx pgx.Tx, known map[hashKey]string) error {
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
