package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// maxHashes bounds the stricter hashes of one group: an error
// whose trace always differs must not fill the table. Others
// are found by the deciding hash. As many may be inherited.
const maxHashes = 100

// hashKey identifies a hash: hashes are a project's own.
type hashKey struct {
	organization, project string
	version               int
	hash                  grouping.Hash
}

// hashRow is a hash and the group that it belongs to.
type hashRow struct {
	hashKey
	scope grouping.HashScope
	group string
}

// hashColumns are rows as the arrays of a statement.
type hashColumns struct {
	organizations, projects []string
	versions                []int16
	hashes                  [][]byte
	scopes, groups          []string
}

func columnsOf(rows []hashRow) (c hashColumns) {
	for _, r := range rows {
		c.organizations, c.projects = append(c.organizations, r.organization), append(c.projects, r.project)
		c.versions = append(c.versions, int16(r.version)) //nolint:gosec // versions of the algorithm are few
		c.hashes, c.scopes, c.groups = append(c.hashes, r.hash[:]), append(c.scopes, string(r.scope)), append(c.groups, r.group)
	}
	return c
}

// order is the order of locks.
func (r hashRow) order(other hashRow) int {
	return cmp.Or(cmp.Compare(r.organization, other.organization), cmp.Compare(r.project, other.project),
		bytes.Compare(r.hash[:], other.hash[:]), cmp.Compare(r.version, other.version))
}

// findKnown returns the groups of the counts' known
// hashes. A stricter hash is known only if the deciding
// one is, so a flood of new errors costs one lookup each.
func findKnown(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (map[hashKey]string, error) {
	var deciding, stricter []hashRow
	for _, c := range counts {
		deciding = appendRows(deciding, c, c.Hashes[len(c.Hashes)-1:])
	}
	known, err := findHashes(ctx, tx, deciding)
	if err != nil {
		return nil, err
	}
	for _, c := range counts {
		if known[keyOf(c, c.Deciding())] != "" {
			stricter = appendRows(stricter, c, c.Hashes[:len(c.Hashes)-1])
		}
	}
	found, err := findHashes(ctx, tx, stricter)
	if err != nil {
		return nil, err
	}
	maps.Copy(known, found)
	return known, nil
}

func appendRows(rows []hashRow, c *grouping.Count, prints []grouping.ScopedHash) []hashRow {
	for _, p := range prints {
		rows = append(rows, hashRow{hashKey: keyOf(c, p), scope: p.Scope})
	}
	return rows
}

func keyOf(c *grouping.Count, p grouping.ScopedHash) hashKey {
	return hashKey{c.Organization, c.Project, p.Version, p.Hash}
}

// findHashes returns the groups of the known hashes.
func findHashes(ctx context.Context, tx pgx.Tx, rows []hashRow) (map[hashKey]string, error) {
	if len(rows) == 0 {
		return map[hashKey]string{}, nil
	}
	c := columnsOf(rows)
	found, err := tx.Query(ctx, `
		SELECT h.organization, h.project, h.version, h.hash, h.error_group
		  FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bytea[]) AS k (organization, project, version, hash)
		  JOIN group_hashes h USING (organization, project, version, hash)`,
		c.organizations, c.projects, c.versions, c.hashes)
	if err != nil {
		return nil, err
	}
	return collectHashes(found)
}

// claimHashes inserts hashes in the order given, and
// returns those inserted. It waits for transactions that
// insert the same ones: the next statement sees theirs.
func claimHashes(ctx context.Context, tx pgx.Tx, rows []hashRow) (map[hashKey]string, error) {
	return insertHashes(ctx, tx, rows, `true`)
}

// claimRoom is claimHashes for groups with room for further hashes of the
// scope, counted by an index. Concurrent transactions may each use it.
func claimRoom(ctx context.Context, tx pgx.Tx, scope grouping.HashScope, rows []hashRow) (map[hashKey]string, error) {
	return insertHashes(ctx, tx, rows, fmt.Sprintf(`%d > (SELECT count(*) FROM (SELECT FROM group_hashes h
			WHERE (h.organization, h.error_group) = (k.organization, k.error_group) AND h.level = '%[2]s' LIMIT %[1]d) held)`, maxHashes, scope))
}

func insertHashes(ctx context.Context, tx pgx.Tx, rows []hashRow, where string) (map[hashKey]string, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	c := columnsOf(rows)
	claimed, err := tx.Query(ctx, `
		INSERT INTO group_hashes (organization, project, version, hash, level, error_group)
		SELECT organization, project, version, hash, level, error_group
		  FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bytea[], $5::text[], $6::text[])
		       WITH ORDINALITY AS k (organization, project, version, hash, level, error_group, n)
		 WHERE `+where+`
		 ORDER BY n
		ON CONFLICT DO NOTHING
		RETURNING organization, project, version, hash, error_group`,
		c.organizations, c.projects, c.versions, c.hashes, c.scopes, c.groups)
	if err != nil {
		return nil, fmt.Errorf("cannot claim %d hashes: %w", len(rows), err)
	}
	return collectHashes(claimed)
}

func collectHashes(rows pgx.Rows) (map[hashKey]string, error) {
	groups := map[hashKey]string{}
	var k hashKey
	var hash []byte
	var group string
	_, err := pgx.ForEachRow(rows, []any{&k.organization, &k.project, &k.version, &hash, &group}, func() error {
		k.hash = grouping.Hash(hash)
		groups[k] = group
		return nil
	})
	return groups, err
}
