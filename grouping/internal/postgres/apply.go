package postgres

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// Apply adds counts to their groups, in tx, which has to act as the system, and founds groups for what is new. Counts
// are sorted as grouping.Tally sorts them.
func Apply(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) error {
	if len(counts) == 0 {
		return nil
	}
	changes, err := resolve(ctx, tx, counts)
	if err != nil {
		return fmt.Errorf("cannot resolve hashes: %w", err)
	}
	if err := saveGroups(ctx, tx, changes); err != nil {
		return fmt.Errorf("cannot save %d groups: %w", len(changes), err)
	}
	if err := saveOccurrences(ctx, tx, changes); err != nil {
		return fmt.Errorf("cannot save occurrences: %w", err)
	}
	return saveFacts(ctx, tx, changes)
}

// change is what happens to one group in a transaction.
type change struct {
	*grouping.Count        // of all kinds of errors that belong to the group
	group           string // its id
	founded         bool   // by this transaction
	samples         int64  // how many it has ever had, after the change
	about           grouping.Description
	why             grouping.Why
}

// resolve finds the group of every count, by the strictest hash that is known, and claims hashes that are new.
func resolve(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) ([]*change, error) {
	known, err := findHashes(ctx, tx, rowsOf(counts))
	if err != nil {
		return nil, err
	}
	founded, err := found(ctx, tx, counts, known)
	if err != nil {
		return nil, err
	}
	if err := claimStricter(ctx, tx, counts, known); err != nil {
		return nil, err
	}
	return changesOf(counts, known, founded), nil
}

// rowsOf are all joining hashes of the counts.
func rowsOf(counts []*grouping.Count) []hashRow {
	rows := make([]hashRow, 0, 2*len(counts))
	for _, c := range counts {
		for _, p := range c.Prints {
			rows = append(rows, hashRow{hashKey: keyOf(c, p.Hash), level: p.Level})
		}
	}
	return rows
}

func keyOf(c *grouping.Count, hash grouping.Hash) hashKey {
	return hashKey{c.Organization, c.Project, c.Version, hash}
}

// groupOf is the group of the strictest known hash of c, or "".
func groupOf(c *grouping.Count, known map[hashKey]string) string {
	for _, p := range c.Prints {
		if group, ok := known[keyOf(c, p.Hash)]; ok {
			return group
		}
	}
	return ""
}

// found claims the deciding hashes of counts that belong to no known group. Whoever claims one founds the group; when
// another transaction was faster, its group is joined. It adds to known, and returns which groups this one founds.
func found(ctx context.Context, tx pgx.Tx, counts []*grouping.Count, known map[hashKey]string) (map[hashKey]string, error) {
	var rows []hashRow
	for _, c := range counts { // sorted by the deciding hash
		key := keyOf(c, c.Deciding())
		if groupOf(c, known) == "" && (len(rows) == 0 || rows[len(rows)-1].hashKey != key) {
			rows = append(rows, hashRow{key, c.Prints[len(c.Prints)-1].Level, grouping.GroupID(c.Project, c.Version, c.Deciding())})
		}
	}
	founded, err := claimHashes(ctx, tx, rows)
	if err != nil {
		return nil, err
	}
	lost := slices.DeleteFunc(rows, func(r hashRow) bool { return founded[r.hashKey] != "" })
	if len(lost) > 0 {
		joined, err := findHashes(ctx, tx, lost)
		if err != nil {
			return nil, err
		}
		for key, group := range joined {
			known[key] = group
		}
	}
	for key, group := range founded {
		known[key] = group
	}
	return founded, nil
}

// claimStricter lets the stricter hashes of every count name its group, too, as far as there is room, so that it stays there.
func claimStricter(ctx context.Context, tx pgx.Tx, counts []*grouping.Count, known map[hashKey]string) error {
	var rows []hashRow
	for _, c := range counts {
		for _, p := range c.Prints[:len(c.Prints)-1] {
			if key := keyOf(c, p.Hash); known[key] == "" {
				rows = append(rows, hashRow{key, p.Level, groupOf(c, known)})
			}
		}
	}
	slices.SortFunc(rows, func(a, b hashRow) int {
		return cmp.Or(cmp.Compare(a.organization, b.organization), cmp.Compare(a.project, b.project), bytes.Compare(a.hash[:], b.hash[:]))
	})
	perGroup := map[[2]string]int{}
	rows = slices.DeleteFunc(rows, func(r hashRow) bool {
		perGroup[[2]string{r.organization, r.group}]++
		return perGroup[[2]string{r.organization, r.group}] > maxHashes
	})
	_, err := claimRoom(ctx, tx, rows)
	return err
}

// changesOf merges the counts of each group, sorted as groups are locked.
func changesOf(counts []*grouping.Count, known, founded map[hashKey]string) []*change {
	type groupKey struct{ organization, group string }
	byGroup := map[groupKey]*change{}
	var changes []*change
	for _, c := range counts {
		key := groupKey{c.Organization, groupOf(c, known)}
		if to, ok := byGroup[key]; ok {
			to.merge(c)
			continue
		}
		ch := &change{Count: c, group: key.group, founded: founded[keyOf(c, c.Deciding())] == key.group}
		byGroup[key], changes = ch, append(changes, ch)
	}
	slices.SortFunc(changes, func(a, b *change) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.group, b.group))
	})
	describe(changes)
	return changes
}

func (ch *change) merge(c *grouping.Count) {
	ch.N += c.N
	ch.Severities |= c.Severities
	ch.Environments = grouping.AddEnvironments(ch.Environments, c.Environments...)
	if c.First.Before(ch.First) {
		ch.First = c.First
	}
	if c.Last.After(ch.Last) {
		ch.Last = c.Last
	}
	ch.Samples = append(ch.Samples, c.Samples...)
}

// describe works out what people see of new groups.
func describe(changes []*change) {
	var g grouping.Grouper
	for _, ch := range changes {
		if ch.founded {
			f := g.Fingerprint(ch.Samples[0].Error)
			ch.about, ch.why = g.Describe(), g.Why(f)
		}
	}
}
