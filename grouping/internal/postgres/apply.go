package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// A Writer stores counted errors.
type Writer struct {
	NewGroups grouping.Budgets
	Clock     func() time.Time // of alerts; nil: nobody is told
	Rules     *RuleBook        // of projects; nil: there are none
}

// Effect is what a transaction did.
type Effect struct {
	Created    []NewGroup
	Decided    []Change // what followed for resolved and ignored groups
	Overflowed int64    // errors that the budgets of new groups had no room for
}

// A NewGroup is a group created by a transaction, as stored.
type NewGroup struct {
	Organization, Project, ID string
	Title, Type, Culprit      string
	FirstSeen                 time.Time
	Entry                     string // whose error created it
	Environment, Release      string // of this error
	Cause                     string // in words
}

// Apply adds counts, sorted as by grouping.Tally, to their groups, and
// creates groups as far as the budgets allow. tx must act as the system.
func (w Writer) Apply(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (Effect, error) {
	if len(counts) == 0 {
		return Effect{}, nil
	}
	changes, err := w.resolve(ctx, tx, counts)
	if err != nil {
		return Effect{}, fmt.Errorf("cannot resolve hashes: %w", err)
	}
	restored, err := findRestored(ctx, tx, changes)
	if err != nil {
		return Effect{}, fmt.Errorf("cannot find what was decided before: %w", err)
	}
	if err := findOwned(ctx, tx, changes, restored); err != nil {
		return Effect{}, fmt.Errorf("cannot find who looks after new groups: %w", err)
	}
	rows, err := withHeads(ctx, tx, changes)
	if err != nil {
		return Effect{}, fmt.Errorf("cannot find what is merged: %w", err)
	}
	if err := saveGroups(ctx, tx, rows, maxReplaced(changes)); err != nil {
		return Effect{}, fmt.Errorf("cannot save %d groups: %w", len(changes), err)
	}
	if err := saveOccurrences(ctx, tx, changes); err != nil {
		return Effect{}, fmt.Errorf("cannot save occurrences: %w", err)
	}
	if err := saveDays(ctx, tx, changes); err != nil {
		return Effect{}, fmt.Errorf("cannot save the numbers of days: %w", err)
	}
	if err := learn(ctx, tx, changes); err != nil {
		return Effect{}, fmt.Errorf("cannot learn from new groups: %w", err)
	}
	if err := saveReleases(ctx, tx, changes); err != nil {
		return Effect{}, fmt.Errorf("cannot save releases: %w", err)
	}
	decided, err := observe(ctx, tx, rows, restored) // behind all locks but those of alerts, as it takes the turn to append
	if err != nil {
		return Effect{}, fmt.Errorf("cannot decide about groups: %w", err)
	}
	if w.Clock != nil {
		if err := alertCounted(ctx, tx, shown(rows), decided, w.Clock()); err != nil {
			return Effect{}, fmt.Errorf("cannot give alerts what came: %w", err)
		}
	}
	effect := effectOf(changes)
	effect.Decided = decided
	return effect, nil
}

// change is what a transaction changes in one group.
type change struct {
	*grouping.Count                 // of all kinds of errors that belong to the group
	group           string          // its id
	row             string          // where its numbers are: under its id, but its own ones if it is a head
	into            string          // its head, also of a head's own numbers; empty: none
	heads           bool            // it is the head of others, and this changes the numbers of all
	created         bool            // by this transaction
	decided         bool            // it is not unresolved
	spiked          time.Time       // the hour of its last spike
	splits          int             // how often it was split when the errors were read
	fresh           []grouping.Seen // what counts for the state of a head
	samples         int64           // how many it has ever had, including these
	count           int64           // of its errors, including these
	about           grouping.Description
	why             grouping.Explanation
	assigned        grouping.Decision // of a new group, by the rules about owners; zero: none matched
	calls           []int32           // of a new group, see grouping.Outline
	packages        []string          // of a new group, see grouping.PackagesOf
}

func effectOf(changes []*change) (e Effect) {
	for _, ch := range changes {
		if ch.created {
			first := ch.Samples[0]
			e.Created = append(e.Created, NewGroup{
				Organization: ch.Organization, Project: ch.Project, ID: ch.group, Title: storable(ch.about.Title),
				Type: storable(ch.about.Type), Culprit: storable(ch.about.Culprit), FirstSeen: ch.First,
				Entry: first.Entry, Environment: storable(first.Environment), Release: storable(first.Release), Cause: storable(first.Created(ch.why)),
			})
		}
		if ch.Overflowed() {
			e.Overflowed += ch.N
		}
	}
	return e
}

// resolve finds the group of every count by the
// strictest known hash, and claims new hashes.
func (w Writer) resolve(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) ([]*change, error) {
	known, inherited, allotted, err := w.resolveWithin(ctx, tx, counts)
	if err != nil {
		return nil, err
	}
	if err := inherited.claim(ctx, tx, known); err != nil {
		return nil, err
	}
	created, err := createGroups(ctx, tx, counts, known)
	if err != nil {
		return nil, err
	}
	if err := allotted.charge(ctx, tx, created); err != nil {
		return nil, fmt.Errorf("cannot charge the budget of new groups: %w", err)
	}
	if err := claimStricter(ctx, tx, counts, known, created); err != nil {
		return nil, err
	}
	return w.changesOf(counts, known, created), nil
}

// groupOf is the group of c's strictest known hash, or "".
func groupOf(c *grouping.Count, known map[hashKey]string) string {
	for _, p := range c.Hashes {
		if group, ok := known[keyOf(c, p)]; ok {
			return group
		}
	}
	return ""
}

// createGroups claims the deciding hashes of counts without a
// group. The transaction that claims one creates the group; others
// join it. It adds to known, and returns the groups created here.
func createGroups(ctx context.Context, tx pgx.Tx, counts []*grouping.Count, known map[hashKey]string) (map[hashKey]string, error) {
	var rows []hashRow
	for _, c := range counts {
		if p := c.Deciding(); groupOf(c, known) == "" {
			rows = append(rows, hashRow{keyOf(c, p), p.Scope, grouping.GroupID(c.Project, p.Version, p.Hash)})
		}
	}
	slices.SortFunc(rows, hashRow.order)
	rows = slices.Compact(rows)
	created, err := claimHashes(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	lost := slices.DeleteFunc(rows, func(r hashRow) bool { return created[r.hashKey] != "" })
	joined, err := findHashes(ctx, tx, lost)
	if err != nil {
		return nil, err
	}
	maps.Copy(known, joined)
	maps.Copy(known, created)
	return created, nil
}

// claimStricter also maps the stricter hashes of every count
// to its group, as far as there is room, so that the errors
// stay there. A count of one gets none: each costs a row.
func claimStricter(ctx context.Context, tx pgx.Tx, counts []*grouping.Count, known, created map[hashKey]string) error {
	var rows []hashRow
	for _, c := range counts {
		group := known[keyOf(c, c.Deciding())]
		if group == "" || c.N == 1 && created[keyOf(c, c.Deciding())] != "" {
			continue
		}
		for _, p := range c.Hashes[:len(c.Hashes)-1] {
			if key := keyOf(c, p); known[key] == "" {
				rows = append(rows, hashRow{key, p.Scope, group})
			}
		}
	}
	slices.SortFunc(rows, hashRow.order)
	rows = slices.Compact(rows)
	perGroup := map[[2]string]int{}
	rows = slices.DeleteFunc(rows, func(r hashRow) bool {
		perGroup[[2]string{r.organization, r.group}]++
		return perGroup[[2]string{r.organization, r.group}] > maxHashes
	})
	_, err := claimRoom(ctx, tx, `h.level = 'trace'`, rows)
	return err
}

// changesOf merges the counts of each group, in the order of locks.
func (w Writer) changesOf(counts []*grouping.Count, known, created map[hashKey]string) []*change {
	byGroup := map[groupKey]*change{}
	var changes []*change
	for _, c := range counts {
		key := groupKey{c.Organization, groupOf(c, known)}
		ch, again := byGroup[key]
		if again {
			ch.Merge(c)
		} else {
			ch = &change{Count: c, group: key.id, row: key.id, splits: c.Samples[0].Error.Learned.Splits.From(key.id)}
			byGroup[key], changes = ch, append(changes, ch)
		}
		ch.created = ch.created || created[keyOf(c, c.Deciding())] == key.id
	}
	sortChanges(changes)
	var g grouping.Grouper
	for _, ch := range changes {
		ch.describe(&g, w.NewGroups)
	}
	return changes
}

// sortChanges sorts by the order of locks.
func sortChanges(changes []*change) {
	slices.SortFunc(changes, func(a, b *change) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.row, b.row))
	})
}

// describe sets the description of a new group, and of an
// overflow, which names the budget that was used up last. Other
// groups keep theirs.
func (ch *change) describe(g *grouping.Grouper, budgets grouping.Budgets) {
	switch {
	case ch.Overflowed():
		ch.about, ch.why = ch.DescribeOverflow(budgets)
	case ch.created:
		ch.about, ch.why = ch.Count.Describe(g)
		ch.calls = grouping.OutlineOf(ch.about.Language, ch.about.Exceptions).Calls()
		ch.packages = grouping.PackagesOf(ch.about.Language, ch.about.Exceptions)
	}
}
