package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// A Regrouper finds of which groups errors of a project are that were counted before.
type Regrouper struct {
	of   Project
	book *RuleBook
	now  grouping.Learned
	was  learned
}

// NewRegrouper reads what was learned of a project, and when. tx must see the project.
func (b *RuleBook) NewRegrouper(ctx context.Context, tx pgx.Tx, of Project) (*Regrouper, error) {
	found, err := findLearned(ctx, tx, []Project{of}, `SELECT organization, project, jsonb_build_object('libraries', learned->'libraries', 'values',
		learned->'values', 'former', learned->'former', 'taught', learned->'taught', 'splits', splits, 'maps', maps, 'rules', rules)`+ofLearned)
	r := &Regrouper{of: of, book: b, was: found[of]}
	r.now = r.was.learned()
	return r, err
}

// Learned is what the consumer knew, and the rules that it obeyed, when it counted errors that were accepted at a time.
func (r *Regrouper) Learned(ctx context.Context, tx pgx.Tx, accepted time.Time) (known grouping.Learned, err error) {
	known = r.was.at(accepted, r.now)
	known.Rules, err = r.book.At(ctx, tx, r.of, known, accepted)
	return known, err
}

// Find finds the group of each error, as people see it; empty: none. The errors have what Learned
// returns. An error whose hashes were another's when it was counted is looked for by what is known now, too,
// as the consumer would do; and what came before its group was made is in the overflow.
func (r *Regrouper) Find(ctx context.Context, tx pgx.Tx, errs []grouping.Occurrence) ([]string, error) {
	found := make([]string, len(errs))
	for _, pass := range [...]func(context.Context, pgx.Tx, []grouping.Occurrence) ([]*grouping.Count, map[hashKey]string, error){
		r.asCounted, r.asOfNow, overflowed,
	} {
		var left []grouping.Occurrence
		var at []int
		for i, o := range errs {
			if found[i] == "" {
				left, at = append(left, o), append(at, i)
			}
		}
		if len(left) == 0 {
			break
		}
		counts, known, err := pass(ctx, tx, left)
		if err != nil {
			return nil, fmt.Errorf("cannot find the groups of %d errors: %w", len(left), err)
		}
		groups, err := r.findShown(ctx, tx, known)
		if err != nil {
			return nil, err
		}
		for k, c := range counts {
			if group, is := groups[groupOf(c, known)]; is && !left[k].At.Before(group.since) {
				found[at[k]] = group.head
			}
		}
	}
	return found, nil
}

func (*Regrouper) asCounted(ctx context.Context, tx pgx.Tx, errs []grouping.Occurrence) ([]*grouping.Count, map[hashKey]string, error) {
	tally, counts := tallied(errs)
	known, err := findKnown(ctx, tx, tally.Counts())
	return counts, known, err
}

func (r *Regrouper) asOfNow(ctx context.Context, tx pgx.Tx, errs []grouping.Occurrence) ([]*grouping.Count, map[hashKey]string, error) {
	for i := range errs {
		rules := errs[i].Error.Learned.Rules
		errs[i].Error.Learned = r.now
		errs[i].Error.Learned.Rules = rules
	}
	tally, counts := tallied(errs)
	all := tally.Counts()
	known, err := findKnown(ctx, tx, all)
	if err != nil {
		return nil, nil, err
	}
	var fresh []*grouping.Count
	for _, c := range all {
		if groupOf(c, known) == "" && !isDecided(c) {
			fresh = append(fresh, c)
		}
	}
	inherited, err := Writer{Rules: r.book}.findInherited(ctx, tx, fresh)
	for key, heir := range inherited {
		known[key] = heir.group
	}
	return counts, known, err
}

func overflowed(ctx context.Context, tx pgx.Tx, errs []grouping.Occurrence) ([]*grouping.Count, map[hashKey]string, error) {
	tally, counts := tallied(errs)
	for _, c := range counts {
		c.Overflow(false)
	}
	known, err := findKnown(ctx, tx, tally.Counts())
	return counts, known, err
}

// tallied counts errors, and returns the count of each.
func tallied(errs []grouping.Occurrence) (*grouping.Tally, []*grouping.Count) {
	tally, counts := grouping.NewTally(), make([]*grouping.Count, len(errs))
	for i, o := range errs {
		counts[i] = tally.Add(o)
	}
	return tally, counts
}

// shownGroup is the group that people see in the place of another, and when that one's own errors begin.
type shownGroup struct {
	head  string
	since time.Time
}

func (r *Regrouper) findShown(ctx context.Context, tx pgx.Tx, known map[hashKey]string) (map[string]shownGroup, error) {
	ids := make([]string, 0, len(known))
	for _, id := range known {
		ids = append(ids, id)
	}
	rows, err := tx.Query(ctx, `SELECT g.id, coalesce(nullif(g.merged_into, ''), g.id), coalesce(own.first_seen, g.first_seen) FROM error_groups g
		LEFT JOIN error_groups own ON (own.organization, own.id) = (g.organization, g.id || `+ownRow+`)
		WHERE g.organization = $1 AND g.id = ANY ($2)`, r.of.Organization, ids)
	if err != nil {
		return nil, err
	}
	groups := map[string]shownGroup{} // bounded by the hashes
	var id string
	var g shownGroup
	_, err = pgx.ForEachRow(rows, []any{&id, &g.head, &g.since}, func() error {
		groups[id] = g
		return nil
	})
	return groups, err
}

// FindEntrySearch finds what finds the log entries of a group and of what is merged into it, and the time of
// the first one. tx must act as the organization.
func FindEntrySearch(ctx context.Context, tx pgx.Tx, organization, head string) (search grouping.EntrySearch, from time.Time, err error) {
	rows, err := tx.Query(ctx, `SELECT entry_types, greatest(last_entry, last_seen), first_seen FROM error_groups WHERE organization = $1 AND id = $2
		UNION ALL SELECT entry_types, greatest(last_entry, last_seen), first_seen FROM error_groups
			WHERE organization = $1 AND merged_into = $2 AND merged_into <> ''`, organization, head)
	if err != nil {
		return search, from, err
	}
	var one grouping.EntrySearch
	var first time.Time
	_, err = pgx.ForEachRow(rows, []any{&one.Types, &one.Last, &first}, func() error {
		search.Merge(one)
		if from.IsZero() || first.Before(from) {
			from = first
		}
		one = grouping.EntrySearch{}
		return nil
	})
	return search, from, err
}
