package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// Bounds of what is read for a preview.
const (
	previewPage    = 50                        // groups whose samples one statement reads
	previewMembers = 2 * grouping.MaxPreviewed // groups with what is merged into them
)

// Preview tries rules on the groups of a project that were seen since a time,
// those last seen first. It is incomplete if there are more of them than
// grouping.MaxPreviewed, or its time is up. tx must act as the organization.
func (b *RuleBook) Preview(ctx context.Context, tx pgx.Tx, of Project, rules *grouping.Ruleset, since, now time.Time, timeUp func() bool) (
	preview grouping.Preview, incomplete bool, err error,
) {
	learned, err := FindLearned(ctx, tx, []Project{of})
	if err != nil {
		return preview, false, err
	}
	p := grouping.Previewer{Before: learned[of], After: learned[of]}
	if p.Before.Rules, err = b.At(ctx, tx, of, learned[of], now); err != nil {
		return preview, false, err
	}
	p.After.Rules = rules
	groups, more, err := previewGroups(ctx, tx, of, since)
	if err != nil {
		return preview, false, err
	}
	for page := range slices.Chunk(groups, previewPage) {
		if incomplete = timeUp(); incomplete {
			break
		}
		if err := tryOn(ctx, tx, of, page, &p); err != nil {
			return preview, false, err
		}
	}
	known, err := findHeads(ctx, tx, of, p.Hashes())
	return p.Result(known), incomplete || more, err
}

// previewGroups are the groups that were seen since a time, each with what is merged into it.
func previewGroups(ctx context.Context, tx pgx.Tx, of Project, since time.Time) (groups []grouping.PreviewGroup, more bool, err error) {
	rows, err := tx.Query(ctx, `WITH heads AS (
			SELECT id, title, count, row_number() OVER (ORDER BY seen_minute DESC, id DESC) AS place FROM error_groups
			 WHERE organization = $1 AND project = $2 AND merged_into = '' AND seen_minute >= $3 ORDER BY seen_minute DESC, id DESC LIMIT $4
		)
		SELECT id, head, title, count, language FROM (
			SELECT h.id, h.id AS head, h.title, h.count, h.place FROM heads h
			UNION ALL SELECT g.id, h.id, h.title, h.count, h.place FROM heads h JOIN error_groups g
				ON g.organization = $1 AND g.merged_into = h.id AND g.merged_into <> '' AND g.id <> h.id || '`+grouping.OwnRow+`'
		) k, LATERAL (SELECT why->>'language' AS language FROM error_groups g WHERE g.organization = $1 AND g.id = k.id) w
		ORDER BY place, id <> head, id LIMIT $5`, of.Organization, of.Name, since.Truncate(time.Minute), grouping.MaxPreviewed+1, previewMembers)
	if err != nil {
		return nil, false, err
	}
	groups, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (g grouping.PreviewGroup, err error) {
		return g, row.Scan(&g.ID, &g.Head, &g.Title, &g.Count, &g.Language)
	})
	heads := 0
	for i, g := range groups {
		if g.ID == g.Head {
			heads++
		}
		if heads > grouping.MaxPreviewed {
			return groups[:i], true, err
		}
	}
	return groups, len(groups) == previewMembers, err
}

// tryOn tries rules on samples of some groups.
func tryOn(ctx context.Context, tx pgx.Tx, of Project, groups []grouping.PreviewGroup, p *grouping.Previewer) error {
	ids := make([]string, len(groups))
	for i, g := range groups {
		ids[i] = g.ID
	}
	samples, err := previewSamples(ctx, tx, of, ids)
	if err != nil {
		return err
	}
	for _, g := range groups {
		g.Samples = samples[g.ID]
		p.Add(g)
	}
	return nil
}

func previewSamples(ctx context.Context, tx pgx.Tx, of Project, groups []string) (map[string][]grouping.PreviewSample, error) {
	rows, err := tx.Query(ctx, `SELECT k.id, o.entry, o.environment, o.exceptions, o.context FROM unnest($2::text[]) AS k (id),
		LATERAL (SELECT entry, environment, exceptions, coalesce(context, '{}') AS context FROM occurrences
			WHERE organization = $1 AND error_group = k.id ORDER BY at DESC, entry DESC LIMIT $3) o`, of.Organization, groups, grouping.PreviewSamples)
	if err != nil {
		return nil, err
	}
	samples := map[string][]grouping.PreviewSample{} // bounded by the groups
	var group, environment string
	var exceptions []Exception
	var c Context
	var s grouping.PreviewSample
	_, err = pgx.ForEachRow(rows, []any{&group, &s.Entry, &environment, &exceptions, &c}, func() error {
		s.Exceptions, s.Context = parsed(exceptions), c.of(environment)
		samples[group] = append(samples[group], s)
		exceptions, c = nil, Context{}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read samples: %w", err)
	}
	return samples, nil
}

// findHeads finds the groups of hashes, as people see them.
func findHeads(ctx context.Context, tx pgx.Tx, of Project, hashes []grouping.ScopedHash) (map[grouping.ScopedHash]grouping.Known, error) {
	scopes := map[hashKey]grouping.ScopedHash{} // bounded by the hashes
	var rows []hashRow
	for _, h := range hashes {
		key := hashKey{of.Organization, of.Name, h.Version, h.Hash}
		scopes[key], rows = h, append(rows, hashRow{hashKey: key})
	}
	found, err := findHashes(ctx, tx, rows)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	var ids []string
	for _, id := range found {
		ids = append(ids, id)
	}
	heads := map[string]grouping.Known{} // by own id; bounded by the hashes
	all, err := tx.Query(ctx, `SELECT g.id, h.id, h.title FROM error_groups g JOIN error_groups h
		ON h.organization = g.organization AND h.id = CASE g.merged_into WHEN '' THEN g.id ELSE g.merged_into END
		WHERE g.organization = $1 AND g.id = ANY ($2)`, of.Organization, ids)
	if err != nil {
		return nil, err
	}
	var k grouping.Known
	if _, err = pgx.ForEachRow(all, []any{&k.ID, &k.Head, &k.Title}, func() error { heads[k.ID] = k; return nil }); err != nil {
		return nil, err
	}
	known := map[grouping.ScopedHash]grouping.Known{} // bounded by the hashes
	for key, id := range found {
		known[scopes[key]] = heads[id]
	}
	return known, nil
}
