package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
)

// headOf is the id $2, or that of the group that it is merged into.
const headOf = `coalesce((SELECT nullif(merged_into, '') FROM error_groups WHERE organization = $1 AND id = $2), $2)`

// groupKey is a group.
type groupKey struct{ organization, id string }

// merge says where a group's errors are shown.
type merge struct {
	head  string
	since *time.Time // errors from before say nothing about the head's state; nil: it is the head
}

// withHeads adds what changes in the heads of merged groups. The numbers of
// a head that are its own are in another row then, so that it can be taken
// apart again. saveGroups checks that nothing was merged meanwhile.
func withHeads(ctx context.Context, tx pgx.Tx, changes []*change) ([]*change, error) {
	merged, err := findMerges(ctx, tx, changes)
	if err != nil || len(merged) == 0 {
		return changes, err
	}
	rows, heads := slices.Clone(changes), map[groupKey]*change{} // bounded by the changes
	for _, ch := range changes {
		of, found := merged[groupKey{ch.Organization, ch.group}]
		if !found {
			continue
		}
		key, share, fresh := groupKey{ch.Organization, of.head}, ch.Share(), ch.Seen
		if of.since != nil {
			fresh = grouping.After(ch.Seen, *of.since)
		}
		head, again := heads[key]
		if again {
			head.Merge(share)
		} else {
			head = &change{Count: share, group: of.head, row: of.head, heads: true, splits: ch.Samples[0].Error.Learned.Splits.From(of.head)}
			heads[key], rows = head, append(rows, head)
		}
		head.fresh = append(head.fresh, fresh...)
		if ch.into = of.head; of.since == nil {
			ch.row, head.Similar, ch.Similar = ch.group+grouping.OwnRow, ch.Similar, grouping.Hash{}
		}
	}
	sortChanges(rows)
	return rows, nil
}

// findMerges finds which of the changed groups are members or heads.
func findMerges(ctx context.Context, tx pgx.Tx, changes []*change) (map[groupKey]merge, error) {
	var organizations, ids, rowIDs []string
	for _, ch := range changes {
		organizations, ids, rowIDs = append(organizations, ch.Organization, ch.Organization), append(ids, ch.group, ch.group),
			append(rowIDs, ch.group, ch.group+grouping.OwnRow)
	}
	rows, err := tx.Query(ctx, `SELECT k.organization, k.error_group, g.merged_into, (g.decided->>'since')::timestamptz
		FROM unnest($1::text[], $2::text[], $3::text[]) AS k (organization, error_group, id)
		JOIN error_groups g ON (g.organization, g.id) = (k.organization, k.id) AND g.merged_into <> ''`, organizations, ids, rowIDs)
	if err != nil {
		return nil, err
	}
	merged := map[groupKey]merge{} // bounded by the changes
	var key groupKey
	var of merge
	_, err = pgx.ForEachRow(rows, []any{&key.organization, &key.id, &of.head, &of.since}, func() error {
		merged[key] = of
		return nil
	})
	return merged, err
}

// ownRow ends the ids of rows with the own numbers of heads.
const ownRow = `'` + grouping.OwnRow + `'`

// observed are the errors that may change the state of the group.
func (ch *change) observed() []grouping.Seen {
	if ch.heads {
		return ch.fresh
	}
	return ch.Seen
}

// shown are the changes of groups that people see: those of members are in their heads.
func shown(rows []*change) []*change {
	return slices.DeleteFunc(slices.Clone(rows), func(ch *change) bool { return ch.into != "" })
}

// hashBytes is a hash as it is stored; empty: none.
func hashBytes(h grouping.Hash) []byte {
	if h == (grouping.Hash{}) {
		return []byte{}
	}
	return h[:]
}

// A Family is a head and its members, as stored.
type Family struct {
	Head    *DecidedGroup
	Members []*DecidedGroup
}

// Versions is the family in the domain.
func (f Family) Versions() grouping.Family {
	kin := grouping.Family{Head: grouping.GroupVersion{ID: f.Head.Group.ID, Version: f.Head.Group.Version}}
	for _, m := range f.Members {
		kin.Members = append(kin.Members, grouping.GroupVersion{ID: m.Group.ID, Version: m.Group.Version})
	}
	return kin
}

// ErrMerging means that a group was merged or taken out of another since a
// statement began. The transaction starts over.
var ErrMerging = errors.New("groups are being merged")

// AwaitMerges has those who merge and split groups of organizations wait until
// tx ends, once those at work have ended. A writer that met ErrMoved does so
// before it reads what was learned: else it would start over for as long as
// somebody merges. tx must act as the system.
func AwaitMerges(ctx context.Context, tx pgx.Tx, organizations []string) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared(hashtextextended('weir grouping merges ' || o, 0)) FROM unnest($1::text[]) AS o`, organizations)
	return err
}

// LockFamilies locks the families of those of some groups that there are.
// tx must act as the organization.
func LockFamilies(ctx context.Context, tx pgx.Tx, organization pg.Organization, ids []string) (families []*Family, err error) {
	for i, id := range ids {
		ids[i] = storable(id)
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(hashtextextended('weir grouping merges ' || $1, 0))`, string(organization)); err != nil {
		return nil, err
	}
	made, err := readGroups(ctx, tx, `organization = $1 AND (id IN (`+headsOf+`) OR merged_into IN (`+headsOf+`) AND id <> merged_into || `+ownRow+`)
		ORDER BY organization, id FOR UPDATE`, organization, ids)
	if err != nil {
		return nil, err
	}
	byHead := map[string]*Family{} // bounded by the groups
	for _, m := range made {
		if m.Group.MergedInto == "" {
			byHead[m.Group.ID] = &Family{Head: m}
		}
	}
	for _, m := range made {
		if head := byHead[m.Group.MergedInto]; head != nil {
			head.Members = append(head.Members, m)
		} else if m.Group.MergedInto != "" {
			return nil, ErrMerging
		}
	}
	for _, f := range byHead {
		if len(f.Members) != f.Head.Group.Members {
			return nil, ErrMerging
		}
		families = append(families, f)
	}
	slices.SortFunc(families, func(a, b *Family) int { return cmp.Compare(a.Head.Group.ID, b.Head.Group.ID) })
	return families, nil
}

// maxShownMembers is how many members of a head are read at once.
const maxShownMembers = 100

// FindMembers returns the members of a head with their own numbers, the most
// frequent first. tx must act as the organization.
func FindMembers(ctx context.Context, tx pgx.Tx, organization pg.Organization, head string) ([]Group, error) {
	rows, err := tx.Query(ctx, `SELECT `+groupColumns+` FROM error_groups WHERE organization = $1 AND merged_into = $2 AND merged_into <> ''
		AND id <> merged_into || `+ownRow+` ORDER BY count DESC, id LIMIT $3`, organization, head, maxShownMembers)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g Group, err error) { return g, row.Scan(g.fields()...) })
}

// headsOf are the heads of the groups $2.
const headsOf = `SELECT coalesce(nullif(merged_into, ''), id) FROM error_groups WHERE organization = $1 AND id = ANY ($2)`

// ApplyMerges makes rows belong to the heads that decisions about them
// name, and the numbers of these those of their families. All of them must
// be locked, and their decisions recorded.
func ApplyMerges(ctx context.Context, tx pgx.Tx, organization string, ids []string) error {
	rows, err := tx.Query(ctx, `SELECT g.id, g.merged_into, coalesce(head.id, '') FROM error_groups g
		LEFT JOIN error_groups head ON (head.organization, head.id) = (g.organization, g.decided->>'into')
		WHERE g.organization = $1 AND g.id = ANY ($2) AND g.merged_into <> coalesce(head.id, '')`, organization, ids)
	if err != nil {
		return err
	}
	var moved, into []string
	left, joined := map[string]bool{}, map[string]bool{} // bounded by the groups
	var id, from, to string
	_, err = pgx.ForEachRow(rows, []any{&id, &from, &to}, func() error {
		moved, into = append(moved, id), append(into, to)
		left[from], joined[to] = true, true
		return nil
	})
	if err != nil || len(moved) == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE error_groups g SET merged_into = k.head FROM unnest($2::text[], $3::text[]) AS k (id, head)
		WHERE g.organization = $1 AND g.id = k.id`, organization, moved, into)
	if err != nil {
		return err
	}
	delete(left, "")
	delete(joined, "")
	for _, heads := range [...]map[string]bool{left, joined} { // a former head gets its own numbers back before it counts as a member
		if err := addUp(ctx, tx, organization, slices.Collect(maps.Keys(heads))); err != nil {
			return fmt.Errorf("cannot add up the families of %d groups: %w", len(moved), err)
		}
	}
	return nil
}

// addUp makes the numbers of heads those of their families. A head without
// members has its own ones.
func addUp(ctx context.Context, tx pgx.Tx, organization string, heads []string) error {
	for _, statement := range [...]string{`
		INSERT INTO error_groups (organization, id, project, title, type, culprit, count, first_seen, last_seen, seen_minute, levels, environments,
			similar_hash, why, samples, expires, arrived, first_release, last_release, releases, entry_types, last_entry, merged_into)
		SELECT organization, id || ` + ownRow + `, project, '', '', '', count, first_seen, last_seen, seen_minute, levels, environments,
		       '', '{}', samples, expires, arrived, first_release, last_release, releases, entry_types, last_entry, id
		  FROM error_groups head WHERE organization = $1 AND id = ANY ($2) AND members = 0
		   AND EXISTS (SELECT FROM error_groups m WHERE m.organization = $1 AND m.merged_into = head.id)`, `
		UPDATE error_groups head SET count = all_of.count, first_seen = all_of.first_seen, last_seen = all_of.last_seen, seen_minute = all_of.seen_minute,
		       levels = all_of.levels, expires = all_of.expires, arrived = all_of.arrived, samples = all_of.samples, members = all_of.members,
		       first_release = all_of.first_release, last_release = coalesce(all_of.last_release, ''),
		       releases = array(SELECT release FROM (SELECT release, min(cardinality(m.releases) - n) AS age
		           FROM error_groups m, unnest(m.releases) WITH ORDINALITY AS r (release, n)
		           WHERE m.organization = $1 AND m.merged_into = head.id GROUP BY release
		           ORDER BY age, release LIMIT ` + strconv.Itoa(grouping.MaxGroupReleases) + `) last
		           ORDER BY age DESC, release),
		       environments = array(SELECT DISTINCT e FROM error_groups m, unnest(m.environments) AS e
		           WHERE m.organization = $1 AND m.merged_into = head.id ORDER BY e LIMIT ` + strconv.Itoa(grouping.MaxEnvironments) + `)
		  FROM (SELECT merged_into AS id, sum(count)::bigint AS count, min(first_seen) AS first_seen, max(last_seen) AS last_seen,
		               max(seen_minute) AS seen_minute, bit_or(levels) AS levels, max(expires) AS expires, max(arrived) AS arrived,
		               sum(samples)::bigint AS samples, count(*) - 1 AS members,
		               (array_agg(first_release ORDER BY first_seen, first_release = '', id))[1] AS first_release,
		               (array_agg(last_release ORDER BY last_seen DESC, id) FILTER (WHERE last_release <> ''))[1] AS last_release
		          FROM error_groups WHERE organization = $1 AND merged_into = ANY ($2) GROUP BY merged_into) all_of
		 WHERE head.organization = $1 AND head.id = all_of.id`, `
		DELETE FROM error_groups own USING error_groups head
		 WHERE head.organization = $1 AND head.id = ANY ($2) AND head.members = 0
		   AND (own.organization, own.id) = (head.organization, head.id || ` + ownRow + `)`,
	} {
		if _, err := tx.Exec(ctx, statement, organization, heads); err != nil {
			return err
		}
	}
	return nil
}

// related are the groups of streams, and all that were ever merged into them or the other way round.
func related(ctx context.Context, tx pgx.Tx, streams []eventstore.Stream) (all []groupKey, merged bool, err error) {
	var organizations, names []string
	for _, s := range streams {
		organizations, names = append(organizations, s.Organization), append(names, s.Name)
		all = append(all, groupKey{s.Organization, strings.TrimPrefix(s.Name, groupStream)})
	}
	rows, err := tx.Query(ctx, `
		WITH merges AS (SELECT organization, data FROM unnest($1::text[], $2::text[]) AS k (organization, stream) JOIN events USING (organization, stream)
		                 WHERE name = '`+eventVersion+string(grouping.WasMerged)+`')
		SELECT organization, data->>'into' FROM merges WHERE data->>'into' <> ''
		UNION SELECT organization, json_array_elements_text(data->'groups') FROM merges`, organizations, names)
	if err != nil {
		return nil, false, err
	}
	others, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (key groupKey, err error) {
		return key, row.Scan(&key.organization, &key.id)
	})
	return append(all, others...), len(others) > 0, err
}

// lockRows locks groups in the order of all locks.
func lockRows(ctx context.Context, tx pgx.Tx, keys []groupKey) error {
	var organizations, ids []string
	for _, k := range keys {
		organizations, ids = append(organizations, k.organization), append(ids, k.id)
	}
	_, err := tx.Exec(ctx, `SELECT FROM error_groups WHERE (organization, id) IN (SELECT * FROM unnest($1::text[], $2::text[]))
		ORDER BY organization, id FOR UPDATE`, organizations, ids)
	return err
}

// applyMergesOf is ApplyMerges for groups of several organizations.
func applyMergesOf(ctx context.Context, tx pgx.Tx, keys []groupKey) error {
	ids := map[string][]string{} // by organization; bounded by the groups
	for _, k := range keys {
		ids[k.organization] = append(ids[k.organization], k.id)
	}
	for _, organization := range slices.Sorted(maps.Keys(ids)) {
		if err := ApplyMerges(ctx, tx, organization, ids[organization]); err != nil {
			return err
		}
	}
	return nil
}

// DecidedGroups are the groups about which something was decided, in the order of locks.
func DecidedGroups(families []*Family, decided grouping.GroupDecisions) (made []*DecidedGroup) {
	for _, f := range families {
		for _, m := range append([]*DecidedGroup{f.Head}, f.Members...) {
			if d, is := decided[m.Group.ID]; is {
				m.Decisions = []grouping.Decision{d}
				made = append(made, m)
			}
		}
	}
	slices.SortFunc(made, func(a, b *DecidedGroup) int { return cmp.Compare(a.Group.ID, b.Group.ID) })
	return made
}
