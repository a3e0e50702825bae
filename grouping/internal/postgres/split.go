package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// storedSplit is a split as it is read.
type storedSplit struct {
	Hash  string    `json:"hash"`
	After time.Time `json:"after"`
	From  string    `json:"from"`
}

func splitsOf(stored []storedSplit) grouping.Splits {
	if len(stored) == 0 {
		return nil
	}
	splits := grouping.Splits{}
	for _, s := range stored {
		if hash, ok := grouping.ParseHash(s.Hash); ok {
			splits[hash] = grouping.Split{After: s.After, From: s.From}
		}
	}
	return splits
}

// isDecided reports whether somebody split errors off, or says by a rule
// which are a group: they are not those of any group before.
func isDecided(c *grouping.Count) bool {
	return c.Deciding().Scope == grouping.ScopeSplit || c.Deciding().Scope == grouping.ScopeRule
}

// These refuse a split.
var (
	ErrNoSample   = errors.New("no such sample")
	ErrManySplits = fmt.Errorf("groups of the project were split %d times, as often as they may be", grouping.MaxSplits)
)

// FindSplitHashes finds the group of a family whose samples have a hash by which errors
// can be split off, and the hashes of all samples of that group.
func FindSplitHashes(ctx context.Context, tx pgx.Tx, organization pg.Organization, f *Family, like grouping.Hash) (
	of *DecidedGroup, samples []grouping.SplitHashes, err error,
) {
	groups := map[string]*DecidedGroup{f.Head.Group.ID: f.Head} // bounded by the members of a head
	ids := []string{f.Head.Group.ID}
	for _, m := range f.Members {
		groups[m.Group.ID], ids = m, append(ids, m.Group.ID)
	}
	rows, err := tx.Query(ctx, `SELECT error_group, trace, stack FROM occurrences WHERE organization = $1 AND error_group = (
		SELECT error_group FROM occurrences WHERE organization = $1 AND error_group = ANY ($2) AND $3 IN (stack, trace) ORDER BY error_group LIMIT 1)`,
		organization, ids, like[:])
	if err != nil {
		return nil, nil, err
	}
	var group string
	var trace, stack []byte
	_, err = pgx.ForEachRow(rows, []any{&group, &trace, &stack}, func() error {
		var s grouping.SplitHashes
		copy(s.Trace[:], trace)
		copy(s.Stack[:], stack)
		of, samples = groups[group], append(samples, s)
		return nil
	})
	if err == nil && of == nil {
		err = ErrNoSample
	}
	return of, samples, err
}

// SaveSplit makes a decision to split hold, unless it does already. Its family must be
// locked by LockFamilies, which lets one of an organization split at a time: so they count right.
func SaveSplit(ctx context.Context, tx pgx.Tx, m *DecidedGroup, d grouping.Decision) (saved bool, err error) {
	hash, ok := grouping.ParseHash(d.Like)
	if !ok {
		return false, fmt.Errorf("group %q was split by %q, which is not a hash", m.Group.ID, d.Like)
	}
	var n int
	err = tx.QueryRow(ctx, `
		WITH saved AS (
			INSERT INTO group_splits (organization, project, hash, after, error_group, made) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT DO NOTHING RETURNING 1
		)
		SELECT EXISTS (SELECT FROM saved), (SELECT count(*) FROM group_splits WHERE organization = $1 AND project = $2)`,
		m.Organization, m.Group.Project, hash[:], d.At, m.Group.ID, d.Into).Scan(&saved, &n)
	if err == nil && saved && n >= grouping.MaxSplits {
		err = ErrManySplits
	}
	return saved, err
}

// saveSplits is SaveSplit for all decisions about groups.
func saveSplits(ctx context.Context, tx pgx.Tx, made []*DecidedGroup) error {
	for _, m := range made {
		for _, d := range m.Decisions {
			if d.Like == "" {
				continue
			}
			if _, err := SaveSplit(ctx, tx, m, d); err != nil {
				return err
			}
		}
	}
	return nil
}
