package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// join is the hash that a group has by maps that came later.
type join struct {
	hash    *grouping.ScopedHash
	release string
	apart   bool // its samples have several: it is left as it is
}

// saveJoins notes by which hashes groups are to be merged, unless they once were.
func saveJoins(ctx context.Context, tx pgx.Tx, of Project, joins map[string]*join) error {
	var groups, releases []string
	var versions []int16
	var hashes [][]byte
	for group, j := range joins {
		if !j.apart {
			groups, releases = append(groups, group), append(releases, j.release)
			versions, hashes = append(versions, int16(j.hash.Version)), append(hashes, j.hash.Hash[:]) //nolint:gosec // versions of the algorithm are few
		}
	}
	if len(groups) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO source_map_joins AS j (organization, project, error_group, version, hash, release)
		SELECT $1, $2, error_group, version, hash, release FROM unnest($3::text[], $4::smallint[], $5::bytea[], $6::text[]) AS k (error_group, version, hash, release)
		ON CONFLICT (organization, error_group) DO UPDATE SET version = excluded.version, hash = excluded.hash, release = excluded.release WHERE NOT j.joined`,
		of.Organization, of.Name, groups, versions, hashes, releases)
	if err != nil {
		return fmt.Errorf("cannot note which groups source maps join: %w", err)
	}
	return nil
}

// A MapMerge is two groups that a source map shows to be one.
type MapMerge struct {
	Organization, Release string
	Groups                [2]string // as it was printed, and as it was written
}

// TakeMapMerge takes the next two groups to merge. It returns false if there are
// none, or others are at work on them. tx must act as the system.
func TakeMapMerge(ctx context.Context, tx pgx.Tx) (taken MapMerge, found bool, err error) {
	err = tx.QueryRow(ctx, `SELECT j.organization, j.release, j.error_group, h.error_group
		FROM source_map_joins j JOIN group_hashes h USING (organization, project, version, hash)
		WHERE NOT j.joined AND h.error_group <> j.error_group LIMIT 1 FOR UPDATE OF j SKIP LOCKED`).
		Scan(&taken.Organization, &taken.Release, &taken.Groups[0], &taken.Groups[1])
	if errors.Is(err, pgx.ErrNoRows) {
		return taken, false, nil
	}
	if err != nil {
		return taken, false, err
	}
	_, err = tx.Exec(ctx, `UPDATE source_map_joins SET joined = true WHERE organization = $1 AND error_group = $2`, taken.Organization, taken.Groups[0])
	return taken, true, err
}

// Families are those of the two groups, locked: one if they are merged already.
func (j MapMerge) Families(ctx context.Context, tx pgx.Tx) ([]*Family, error) {
	return LockFamilies(ctx, tx, pg.Organization(j.Organization), slices.Clone(j.Groups[:]))
}
