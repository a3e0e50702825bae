package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of a look for similar groups.
const (
	similarLooked  = 1000 // groups that share the loosest hash; of these
	similarWeighed = 50   // the ones last seen, whose traces are compared
)

// Candidate is a group that may be similar, and what its first sample was.
type Candidate struct {
	Group
	Outline grouping.Outline
}

// Similar returns a group, and others of its project that share its
// loosest hash. tx acts as the organization.
func Similar(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (of Candidate, others []Candidate, err error) {
	if of.Group, _, err = FindGroup(ctx, tx, organization, id); err != nil {
		return Candidate{}, nil, err
	}
	all, err := candidates(ctx, tx, organization, id)
	if err != nil {
		return Candidate{}, nil, err
	}
	for _, c := range all {
		if c.ID == id {
			of = c
			continue
		}
		others = append(others, c)
	}
	return of, others, nil
}

func candidates(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) ([]Candidate, error) {
	rows, err := tx.Query(ctx, `
		WITH one AS (SELECT * FROM error_groups WHERE organization = $1 AND id = $2
		), alike AS (SELECT s.* FROM one JOIN error_groups s USING (organization, project, similar_hash) WHERE s.id <> $2 LIMIT $3
		), newest AS (TABLE one UNION ALL (SELECT * FROM alike ORDER BY last_seen DESC, id LIMIT $4))
		SELECT `+groupColumns+`, why->>'language',
		       coalesce((SELECT CASE WHEN octet_length(o.exceptions::text) <= $5 THEN o.exceptions END FROM occurrences o
			WHERE o.organization = $1 AND o.error_group = newest.id ORDER BY o.slot LIMIT 1), '[]')
		  FROM newest`, organization, id, similarLooked, similarWeighed, maxStored)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Candidate, err error) {
		var language grouping.Language
		var exceptions []Exception
		err = row.Scan(append(c.fields(), &language, &exceptions)...)
		c.Outline = grouping.OutlineOf(language, parsed(bound(exceptions)))
		return c, err
	})
}

// parsed are the exceptions as they were before they were stored.
func parsed(stored []Exception) (exceptions []grouping.Exception) {
	for _, x := range stored {
		e := grouping.Exception{Type: x.Type, Message: x.Message}
		for _, f := range x.Frames {
			e.Frames = append(e.Frames, grouping.Frame(f))
		}
		exceptions = append(exceptions, e)
	}
	return exceptions
}
