package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/pg"
)

// A Sorting is an order of a list, the highest first.
type Sorting string

// The sortings; empty: by when a group was last seen.
const (
	ByFirstSeen Sorting = "first_seen"
	ByCount     Sorting = "count"
	ByUsers     Sorting = "users" // of the last RecentDays
)

// How many groups are sorted, those that match and were last seen: nothing is
// indexed by what changes with each error.
const (
	maxSorted        = 200_000
	maxSortedByUsers = 2000 // their users are counted first
)

// sortKeys are what groups are sorted by, as numbers.
var sortKeys = map[Sorting]string{ // bounded by the sortings
	ByFirstSeen: `(extract(epoch FROM first_seen) * 1000000)::bigint`, ByCount: `count`,
}

// sorted lists groups by something else than when they were last seen.
func sorted(ctx context.Context, tx pgx.Tx, organization pg.Organization, q GroupQuery, now time.Time) (Page, error) {
	var keys []GroupCursor
	var err error
	if q.Sort == ByUsers {
		keys, err = q.byUsers(ctx, tx, organization, now)
	} else {
		keys, err = q.byKey(ctx, tx, organization)
	}
	if err != nil || len(keys) == 0 {
		return Page{}, err
	}
	return pageOf(ctx, tx, organization, keys, q.Limit)
}

func (q *GroupQuery) byKey(ctx context.Context, tx pgx.Tx, organization pg.Organization) ([]GroupCursor, error) {
	beyond, err := q.minuteOf(ctx, tx, organization, GroupCursor{}, maxSorted+1)
	if err != nil {
		return nil, err
	}
	s, chosen, behind := q.inRange(organization, GroupCursor{}, GroupCursor{}), "", ""
	if !beyond.IsZero() { // else all of them may be sorted: to choose some would sort them twice
		chosen = fmt.Sprintf(`ORDER BY seen_minute DESC LIMIT %d`, maxSorted)
	}
	query := fmt.Sprintf(`SELECT id, %s AS key FROM error_groups WHERE %s %s`, sortKeys[q.Sort], s.where(), chosen)
	if q.After != (GroupCursor{}) {
		behind = fmt.Sprintf(`WHERE (key, id) < ($%d, $%d)`, len(s.args)+1, len(s.args)+2)
		s.args = append(s.args, q.After.Key, q.After.ID)
	}
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT key, id FROM (%s) found %s ORDER BY key DESC, id DESC LIMIT %d`, query, behind, q.Limit+1), s.args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c GroupCursor, err error) { return c, row.Scan(&c.Key, &c.ID) })
}

func (q *GroupQuery) byUsers(ctx context.Context, tx pgx.Tx, organization pg.Organization, now time.Time) ([]GroupCursor, error) {
	ids, err := q.newest(ctx, tx, organization, maxSortedByUsers)
	if err != nil {
		return nil, err
	}
	users, err := usersOf(ctx, tx, organization, ids, now)
	if err != nil {
		return nil, err
	}
	var keys []GroupCursor
	for _, id := range ids {
		if c := (GroupCursor{Key: users[id], ID: id}); q.After == (GroupCursor{}) || c.sorted(q.After) > 0 {
			keys = append(keys, c)
		}
	}
	slices.SortFunc(keys, GroupCursor.sorted)
	return keys[:min(len(keys), q.Limit+1)], nil
}

// newest are the ids of the groups that match and were last seen, range by range:
// most often few have to be looked at.
func (q *GroupQuery) newest(ctx context.Context, tx pgx.Tx, organization pg.Organization, most int) (ids []string, err error) {
	for after, stretch := (GroupCursor{}), scanBatch; ; stretch = min(stretch*scanGrowth, maxScan) {
		border, err := q.rangeEnd(ctx, tx, organization, after, stretch)
		if err != nil {
			return nil, err
		}
		s := q.inRange(organization, after, border)
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT id FROM error_groups WHERE %s ORDER BY seen_minute DESC LIMIT %d`, s.where(), most-len(ids)), s.args...)
		if err != nil {
			return nil, err
		}
		found, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if ids = append(ids, found...); err != nil || len(ids) == most || border == (GroupCursor{}) {
			return ids, err
		}
		after = border
	}
}

// sorted compares places, the highest first.
func (c GroupCursor) sorted(other GroupCursor) int {
	return cmp.Or(cmp.Compare(other.Key, c.Key), cmp.Compare(other.ID, c.ID))
}

// usersOf counts the users of groups of the last RecentDays.
func usersOf(ctx context.Context, tx pgx.Tx, organization pg.Organization, groups []string, now time.Time) (map[string]int64, error) {
	rows, err := tx.Query(ctx, `
		WITH kin AS (SELECT id AS head, id FROM unnest($2::text[]) AS k (id) UNION ALL SELECT m.merged_into, m.id FROM unnest($2::text[]) AS k (id)
			JOIN error_groups m ON m.organization = $1 AND m.merged_into = k.id AND m.merged_into <> '')
		SELECT head, users FROM kin JOIN group_days d ON d.organization = $1 AND d.error_group = kin.id AND d.day > $3::date WHERE users IS NOT NULL`,
		organization, groups, now.UTC().AddDate(0, 0, -RecentDays))
	if err != nil {
		return nil, err
	}
	counted := map[string]int64{} // bounded by the groups
	sketches := map[string][][]byte{}
	var id string
	var sketch []byte
	if _, err = pgx.ForEachRow(rows, []any{&id, &sketch}, func() error {
		sketches[id], sketch = append(sketches[id], sketch), nil
		return nil
	}); err != nil {
		return nil, err
	}
	for id, of := range sketches {
		if counted[id], err = countUsers(of); err != nil {
			return nil, err
		}
	}
	return counted, nil
}

// pageOf reads the groups of a page, in the order of their keys.
func pageOf(ctx context.Context, tx pgx.Tx, organization pg.Organization, keys []GroupCursor, limit int) (page Page, err error) {
	var ids []string
	for _, c := range keys {
		ids = append(ids, c.ID)
	}
	rows, err := tx.Query(ctx, `SELECT `+groupColumns+` FROM error_groups WHERE organization = $1 AND id = ANY ($2)`, organization, ids)
	if err != nil {
		return page, err
	}
	found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g Group, err error) { return g, row.Scan(g.fields()...) })
	if err != nil {
		return page, err
	}
	byID := map[string]Group{} // bounded by the page
	for _, g := range found {
		byID[g.ID] = g
	}
	for i, c := range keys {
		if g, there := byID[c.ID]; there && !page.add(g, limit) {
			page.Next = &keys[i-1]
			break
		}
	}
	return page, nil
}
