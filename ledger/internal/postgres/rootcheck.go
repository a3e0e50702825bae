package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ledger"
)

// A seal is an hour with its root.
type seal struct {
	hour          time.Time
	root          []byte
	organizations int64
	checkpoint    []byte // in the root; nil: none
	refused       []byte // hash of the sums of refusals, in the root; nil: none
}

const sealColumns = `hour, root, organizations, checkpoint, refused`

func (s *seal) fields() []any {
	return []any{&s.hour, &s.root, &s.organizations, &s.checkpoint, &s.refused}
}

// sum returns the hash of a root of chains with what else the hour has.
func (s seal) sum(root *ledger.Root) ledger.Hash {
	for _, hash := range [][]byte{s.checkpoint, s.refused} {
		if hash != nil {
			root.AddHash(hashOf(hash))
		}
	}
	return root.Sum()
}

// verifyRoots computes each root again where its links are kept, from the
// chains before them and the links since.
func verifyRoots(ctx context.Context, tx pgx.Tx) ([]ledger.Violation, error) {
	return verifyRootsOf(ctx, tx, `root IS NOT NULL AND hour >= coalesce((SELECT min(hour) FROM links), 'infinity')`)
}

// verifyRootOf computes the root of an hour again.
func verifyRootOf(ctx context.Context, tx pgx.Tx, hour time.Time) ([]ledger.Violation, error) {
	return verifyRootsOf(ctx, tx, `hour = $1`, hour)
}

func verifyRootsOf(ctx context.Context, tx pgx.Tx, which string, args ...any) ([]ledger.Violation, error) {
	rows, err := tx.Query(ctx, `SELECT `+sealColumns+` FROM seals WHERE `+which+` ORDER BY hour`, args...)
	if err != nil {
		return nil, err
	}
	var seals []seal
	var s seal
	if _, err := pgx.ForEachRow(rows, s.fields(), func() error {
		seals = append(seals, s)
		return nil
	}); err != nil || len(seals) == 0 {
		return nil, err
	}
	heads, err := headsBeforeLinks(ctx, tx)
	if err != nil {
		return nil, err
	}
	return heads.compare(ctx, tx, seals)
}

// chainHeads are the heads of chains at an instant, by organization.
type chainHeads map[string]ledger.Link

// headsBeforeLinks returns the heads before the first links kept.
func headsBeforeLinks(ctx context.Context, tx pgx.Tx) (chainHeads, error) {
	rows, err := tx.Query(ctx, `SELECT organization, sequence - 1, previous FROM
			(SELECT DISTINCT ON (organization) organization, sequence, previous FROM links ORDER BY organization, sequence) l WHERE sequence > 1
		UNION ALL SELECT organization, sequence, hash FROM chains c WHERE NOT EXISTS (SELECT FROM links l WHERE l.organization = c.organization)`)
	if err != nil {
		return nil, err
	}
	heads := chainHeads{}
	var l ledger.Link
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&l.Organization, &l.Sequence, &hash}, func() error {
		l.Hash = hashOf(hash)
		heads[l.Organization] = l
		return nil
	})
	return heads, err
}

// compare adds the links hour by hour and compares each seal's root.
func (h chainHeads) compare(ctx context.Context, tx pgx.Tx, seals []seal) (violations []ledger.Violation, err error) {
	rows, err := tx.Query(ctx, `SELECT organization, sequence, hour, hash FROM links WHERE hour <= $1 ORDER BY hour, organization`, seals[len(seals)-1].hour)
	if err != nil {
		return nil, err
	}
	var l ledger.Link
	var hash []byte
	_, err = pgx.ForEachRow(rows, []any{&l.Organization, &l.Sequence, &l.Hour, &hash}, func() error {
		for len(seals) > 0 && l.Hour.After(seals[0].hour) {
			violations, seals = append(violations, h.differs(seals[0])...), seals[1:]
		}
		l.Hash = hashOf(hash)
		h[l.Organization] = l
		return nil
	})
	for _, s := range seals {
		violations = append(violations, h.differs(s)...)
	}
	return violations, err
}

func (h chainHeads) differs(s seal) []ledger.Violation {
	root := ledger.NewRoot()
	for _, id := range sortedKeys(h) {
		root.Add(id, h[id].Sequence, h[id].Hash)
	}
	if sum := s.sum(root); !slices.Equal(sum[:], s.root) || root.Organizations != s.organizations {
		return []ledger.Violation{{Invariant: ledger.RootIsChains, Detail: fmt.Sprintf("hour %s: the root of %d chains is %x, that of the %d that are kept %x",
			s.hour.UTC().Format(time.RFC3339), s.organizations, s.root, root.Organizations, sum)}}
	}
	return nil
}
