package groups

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Similar is a group that may have the same fault.
type Similar struct {
	Group      postgres.Group
	Similarity float64  // from 0 to 1
	OnlyHere   []string // calls of the other group that this one lacks
	OnlyThere  []string
}

// Bounds of what counts as similar.
const (
	MaxSimilar    = 20   // groups
	minSimilarity = 0.05 // of each
)

// Similar finds the groups most like one. If the principal
// may not read it, the error is postgres.ErrNoGroup.
func (s *Service) Similar(ctx context.Context, who identity.Principal, id string) ([]Similar, error) {
	var alike postgres.Candidates
	err := s.read(ctx, who.Organization, func(tx pgx.Tx, organization pg.Organization) (err error) {
		alike, err = postgres.Similar(ctx, tx, organization, id)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case !s.mayRead(who, alike.Of.Project):
		return nil, postgres.ErrNoGroup
	}
	return rank(alike), nil
}

// apart is the time from the last error of one group to the other's first.
func apart(a, b postgres.Group) time.Duration {
	return max(0, a.FirstSeen.Sub(b.LastSeen), b.FirstSeen.Sub(a.LastSeen))
}

// rank sorts groups by similarity, and adds differing calls.
func rank(alike postgres.Candidates) []Similar {
	of, ranked := alike.Of, []Similar(nil)
	for _, other := range alike.Others {
		similarity := of.Outline.Similarity(other.Outline, apart(of.Group, other.Group), alike.Rarity)
		if here, there := of.Outline.Differences(other.Outline); similarity >= minSimilarity {
			ranked = append(ranked, Similar{Group: other.Group, Similarity: similarity, OnlyHere: here, OnlyThere: there})
		}
	}
	slices.SortStableFunc(ranked, func(a, b Similar) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), b.Group.LastSeen.Compare(a.Group.LastSeen), cmp.Compare(a.Group.ID, b.Group.ID))
	})
	return ranked[:min(len(ranked), MaxSimilar)]
}
