package groups

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
)

// Groups finds groups. One that the principal may not read is not found.
type Groups struct {
	db         *store
	incomplete prometheus.Counter
}

func incompletePages(registerer prometheus.Registerer) prometheus.Counter {
	return promauto.With(registerer).NewCounter(prometheus.CounterOpts{
		Name: "weir_grouping_reads_incomplete_total", Help: "Pages of groups that ended because their time was over.",
	})
}

// Now is the time until which errors are counted.
func (g *Groups) Now() time.Time { return g.db.clock() }

// maxSearchTime ends the page of a long search.
const maxSearchTime = 2 * time.Second

// List finds a page of groups. After maxSearchTime it ends with what was found.
func (g *Groups) List(ctx context.Context, organization string, query postgres.GroupQuery) (postgres.Page, error) {
	page, err := read(ctx, g.db, organization, func(tx pgx.Tx, of pg.Organization) (page postgres.Page, err error) {
		query.Assignee = g.db.assignee(organization, query.Assignee)
		query.Now, query.Hidden, query.TimeUp = g.db.clock(), g.db.hidden(organization), g.db.timeUp(maxSearchTime)
		if page, err = postgres.Groups(ctx, tx, of, query); err != nil {
			return page, err
		}
		page.Recent, err = postgres.FindRecent(ctx, tx, of, page.IDs(), query.Now)
		return page, err
	})
	if page.Incomplete {
		g.incomplete.Inc()
	}
	return page, err
}

// Find finds a group without what explains it.
func (g *Groups) Find(ctx context.Context, who identity.Principal, id string) (postgres.Group, error) {
	return readGroup(ctx, g.db, who, id, func(_ pgx.Tx, group postgres.Group) (postgres.Group, error) { return group, nil })
}

// A Detail is a group with its samples, why it is
// one, and similar groups, the most alike first.
type Detail struct {
	Group       postgres.Group
	Why         postgres.Explanation
	Members     []postgres.Group // that were merged into it, with their own numbers
	Occurrences []postgres.Occurrence
	Similar     []Similar
	Entries     EntrySearch
	Unordered   string // the release of its last error, if nothing tells whether that is newer than the one in which it is resolved
}

// Detail finds a group with what explains it.
func (g *Groups) Detail(ctx context.Context, who identity.Principal, id string) (Detail, error) {
	return read(ctx, g.db, who.Organization, func(tx pgx.Tx, organization pg.Organization) (found Detail, err error) {
		if found.Group, found.Why, err = g.db.group(ctx, tx, who, id); err != nil {
			return found, err
		}
		id = found.Group.ID // the head's, perhaps
		if found.Members, err = postgres.FindMembers(ctx, tx, organization, id); err != nil {
			return found, err
		}
		if found.Occurrences, err = postgres.Occurrences(ctx, tx, organization, id); err != nil {
			return found, err
		}
		if found.Entries, err = searchOf(ctx, tx, who.Organization, found.Group); err != nil {
			return found, err
		}
		if found.Unordered, err = unordered(ctx, tx, organization, found.Group); err != nil {
			return found, err
		}
		candidates, err := postgres.Similar(ctx, tx, organization, id)
		found.Similar = rank(candidates)
		return found, err
	})
}

func unordered(ctx context.Context, tx pgx.Tx, organization pg.Organization, of postgres.Group) (release string, err error) {
	if of.State.Resolution.Release == "" {
		return "", nil
	}
	known, err := postgres.FindReleases(ctx, tx, postgres.Project{Organization: string(organization), Name: of.Project})
	if known.Unordered(of.LastRelease, of.State.Resolution.Release) {
		release = of.LastRelease
	}
	return release, err
}

// Activity finds decisions about a group, the newest first: at most limit of
// those before a number.
func (g *Groups) Activity(ctx context.Context, who identity.Principal, id string, before int64, limit int) ([]postgres.Activity, error) {
	return readGroup(ctx, g.db, who, id, func(tx pgx.Tx, _ postgres.Group) ([]postgres.Activity, error) {
		return postgres.FindActivity(ctx, tx, pg.Organization(who.Organization), id, before, limit)
	})
}

// A Count is how often a group happened, where and to whom.
type Count struct {
	postgres.Numbers
	Releases grouping.SeenReleases // all known ones of the project
}

// Count counts the errors of a group, and of what is merged into it, on the days from one instant to another.
func (g *Groups) Count(ctx context.Context, who identity.Principal, id string, from, to time.Time) (Count, error) {
	return readGroup(ctx, g.db, who, id, func(tx pgx.Tx, group postgres.Group) (found Count, err error) {
		if found.Releases, err = postgres.FindReleases(ctx, tx, postgres.Project{Organization: who.Organization, Name: group.Project}); err != nil {
			return found, err
		}
		found.Numbers, err = postgres.FindNumbers(ctx, tx, pg.Organization(who.Organization), []string{group.ID}, from, to)
		return found, err
	})
}

// Similar is a group that may have the same fault.
type Similar struct {
	Group      postgres.Group
	Similarity float64  // from 0 to 1
	OnlyHere   []string // calls of the other group that this one lacks
	OnlyThere  []string
}

// Similar finds the groups most like one.
func (g *Groups) Similar(ctx context.Context, who identity.Principal, id string) ([]Similar, error) {
	return readGroup(ctx, g.db, who, id, func(tx pgx.Tx, group postgres.Group) ([]Similar, error) {
		found, err := postgres.Similar(ctx, tx, pg.Organization(who.Organization), group.ID)
		return rank(found), err
	})
}

// rank sorts groups by similarity, and adds differing calls.
func rank(found postgres.Candidates) []Similar {
	of, ranked := found.Of, []Similar(nil)
	for _, other := range found.Others {
		similarity := of.Outline.Similarity(other.Outline, found.Rarity)
		if here, there := of.Outline.Differences(other.Outline); similarity >= grouping.MinSimilarity {
			ranked = append(ranked, Similar{Group: other.Group, Similarity: similarity, OnlyHere: here, OnlyThere: there})
		}
	}
	slices.SortStableFunc(ranked, func(a, b Similar) int {
		return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), b.Group.LastSeen.Compare(a.Group.LastSeen), cmp.Compare(a.Group.ID, b.Group.ID))
	})
	return ranked[:min(len(ranked), grouping.MaxSimilar)]
}
