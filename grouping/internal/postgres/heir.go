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

// heirs says which deciding hashes belong to groups that a former version of the algorithm created.
type heirs map[hashKey]string

// findHeirs looks for the groups of counts that no hash of today leads to, by the hashes that former versions would have made of
// them. Only what is new today costs that: as soon as a hash of today belongs to the group, it is found like any other. Of counts
// with one deciding hash the first that has a group brings all of them there.
func findHeirs(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (heirs, error) {
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

// claim lets the deciding hashes name their groups, as far as these have room, and adds them to known; those that there is no room
// for are inherited again when they come again. Where another transaction was faster, its group counts.
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
