package postgres

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of a search for similar groups.
const (
	maxSameHash = 1000 // groups that share the loosest hash
	maxNewest   = 2000 // groups of the project that were last seen: their calls are read
	maxCompared = 50   // groups whose traces are compared
)

// Candidate is a group that may be similar,
// and the outline of its first sample.
type Candidate struct {
	Group
	Outline grouping.Outline
}

// Candidates are a group and maybe similar ones of its project.
type Candidates struct {
	Of     Candidate
	Others []Candidate
	Rarity *grouping.Rarity // of their calls in the project
}

// Similar returns a group and those that share its loosest hash or
// whose calls are most like its own. tx must act as the organization.
func Similar(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (found Candidates, err error) {
	if found.Of.Group, _, err = FindGroup(ctx, tx, organization, id); err != nil {
		return Candidates{}, err
	}
	of, others, err := traced(ctx, tx, organization, id)
	if err != nil {
		return Candidates{}, err
	}
	found.Rarity = rarityAmong(others)
	all, err := candidates(ctx, tx, organization, append(nearest(of, others, found.Rarity), id))
	for _, c := range all {
		if c.ID == id {
			found.Of = c
			continue
		}
		found.Others = append(found.Others, c)
	}
	return found, err
}

// tracedGroup is a group and the numbers of its calls.
type tracedGroup struct {
	id         string
	calls      []int32
	hashed     bool // it shares the loosest hash
	similarity float64
}

// traced returns a group, and those that may be like it.
func traced(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (of tracedGroup, others []tracedGroup, err error) {
	rows, err := tx.Query(ctx, `
		WITH one AS (SELECT organization, project, similar_hash, id, calls FROM error_groups WHERE organization = $1 AND id = $2
		), hashed AS (SELECT s.id, s.calls FROM one JOIN error_groups s USING (organization, project, similar_hash) WHERE s.id <> $2 LIMIT $3
		), newest AS (SELECT s.* FROM one, LATERAL (SELECT id, calls FROM error_groups
			WHERE organization = $1 AND project = one.project ORDER BY seen_minute DESC LIMIT $4) s)
		SELECT id, calls, true FROM one UNION ALL SELECT id, calls, true FROM hashed
		UNION ALL SELECT id, calls, false FROM newest WHERE id <> $2 AND id NOT IN (SELECT id FROM hashed)`,
		organization, id, maxSameHash, maxNewest)
	if err != nil {
		return tracedGroup{}, nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g tracedGroup, err error) {
		return g, row.Scan(&g.id, &g.calls, &g.hashed)
	})
	n := slices.IndexFunc(all, func(g tracedGroup) bool { return g.id == id })
	if err != nil || n < 0 {
		return tracedGroup{}, nil, err
	}
	of = all[n]
	return of, slices.Delete(all, n, n+1), nil
}

func rarityAmong(groups []tracedGroup) *grouping.Rarity {
	calls := make([][]int32, len(groups))
	for i, g := range groups {
		calls[i] = g.calls
	}
	return grouping.RarityAmong(calls)
}

// nearest are the groups whose traces are worth comparing: first
// those with the same hash, then those whose calls align best.
func nearest(of tracedGroup, others []tracedGroup, rarity *grouping.Rarity) (ids []string) {
	query := rarity.Query(of.calls)
	for i := range others {
		if others[i].similarity = query.Alignment(others[i].calls); others[i].hashed {
			others[i].similarity++
		}
	}
	others = slices.DeleteFunc(others, func(g tracedGroup) bool { return g.similarity == 0 })
	slices.SortFunc(others, func(a, b tracedGroup) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(a.id, b.id))
	})
	for _, g := range others[:min(len(others), maxCompared)] {
		ids = append(ids, g.id)
	}
	return ids
}

func candidates(ctx context.Context, tx pgx.Tx, organization pg.Organization, ids []string) ([]Candidate, error) {
	rows, err := tx.Query(ctx, `
		SELECT `+groupColumns+`, why->>'language',
		       coalesce((SELECT exceptions FROM occurrences o WHERE o.organization = $1 AND o.error_group = id ORDER BY o.slot LIMIT 1), '[]')
		  FROM error_groups WHERE organization = $1 AND id = ANY ($2)`, organization, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Candidate, err error) {
		var language trace.Language
		var exceptions []Exception
		err = row.Scan(append(c.fields(), &language, &exceptions)...)
		c.Outline = grouping.OutlineOf(language, parsed(exceptions))
		return c, err
	})
}

// parsed are the exceptions as they were before they were stored.
func parsed(stored []Exception) (exceptions []trace.Exception) {
	for _, x := range stored {
		e := trace.Exception{Type: x.Type, Message: x.Message}
		for _, f := range x.Frames {
			e.Frames = append(e.Frames, trace.Frame(f))
		}
		exceptions = append(exceptions, e)
	}
	return exceptions
}
