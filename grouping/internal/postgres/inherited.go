package postgres

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// scopeInherited marks deciding hashes of groups that were found by former hashes.
const scopeInherited grouping.HashScope = "inherited"

// inheritedGroups are those that former rules created, by today's deciding hash.
type inheritedGroups map[hashKey]string

// findInherited finds groups of counts without a known hash by their
// former hashes. Only new errors cost that, and only in a project that
// has former rules. Where several counts share a deciding hash, the
// first that has a group decides for all.
func findInherited(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (inheritedGroups, error) {
	taught, err := findFormer(ctx, tx, projectsOf(counts))
	if err != nil || len(taught) == 0 {
		return inheritedGroups{}, err
	}
	hashes, rows := formerHashes(counts, taught)
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

// formerHashes returns the former hashes of each count, and all as rows.
// Those of another grouping.Version would be added here.
func formerHashes(counts []*grouping.Count, taught map[Project]learned) (hashes [][]grouping.ScopedHash, rows []hashRow) {
	var g grouping.Grouper
	hashes = make([][]grouping.ScopedHash, len(counts))
	for i, c := range counts {
		hashes[i] = taught[projectOf(c)].hashes(&g, c)
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
