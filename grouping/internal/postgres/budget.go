package postgres

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// activeBudgetsKept is how long a project's budgets are kept before
// its newest hour. A record accepted earlier begins a new one.
const activeBudgetsKept = 48 * time.Hour

// budgetKey is a project and an hour.
type budgetKey struct {
	organization, project string // "": all projects of the organization together
	hour                  time.Time
}

// ofOrganization is the budget of all the organization's projects.
func (k budgetKey) ofOrganization() budgetKey {
	return budgetKey{organization: k.organization, hour: k.hour}
}

func (k budgetKey) order(other budgetKey) int {
	return cmp.Or(cmp.Compare(k.organization, other.organization), cmp.Compare(k.project, other.project), k.hour.Compare(other.hour))
}

func budgetOf(c *grouping.Count) budgetKey { return budgetKey{c.Organization, c.Project, c.Hour} }

// allotment maps the deciding hashes of groups that
// may be created to the budgets they are charged to.
type allotment map[hashKey]budgetKey

// resolveWithin finds the groups of the counts. Those without one move
// to their project's overflow where its budget, or the organization's,
// is used up. Room goes in the order of the log, so records create the
// same groups however transactions split them. Budgets with room are
// locked until the transaction ends; used-up ones are not. Budgets are
// read before hashes, so the groups that used one up are visible.
func (w Writer) resolveWithin(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (
	known map[hashKey]string, inherited inheritedGroups, allotted allotment, err error,
) {
	used, err := readBudgets(ctx, tx, budgetKeys(counts))
	if err != nil {
		return nil, nil, nil, err
	}
	if known, err = findKnown(ctx, tx, counts); err != nil {
		return nil, nil, nil, err
	}
	fresh := slices.DeleteFunc(slices.Clone(counts), func(c *grouping.Count) bool { return groupOf(c, known) != "" })
	if inherited, err = w.findInherited(ctx, tx, slices.DeleteFunc(slices.Clone(fresh), isDecided)); err != nil {
		return nil, nil, nil, err
	}
	fresh = slices.DeleteFunc(fresh, func(c *grouping.Count) bool { return inherited[keyOf(c, c.Deciding())].group != "" })
	roomy := slices.DeleteFunc(slices.Clone(fresh), func(c *grouping.Count) bool { return !w.hasRoom(used, budgetOf(c)) })
	if len(roomy) > 0 {
		if err := lockBudgets(ctx, tx, roomy, used); err != nil {
			return nil, nil, nil, err
		}
		again, err := findKnown(ctx, tx, roomy) // others may have created some while this transaction waited
		if err != nil {
			return nil, nil, nil, err
		}
		maps.Copy(known, again)
	}
	return known, inherited, w.allot(fresh, known, used), nil
}

// allot assigns the budgets' room in order,
// and moves the rest to the overflow.
func (w Writer) allot(fresh []*grouping.Count, known map[hashKey]string, used map[budgetKey]int) allotment {
	slices.SortFunc(fresh, func(a, b *grouping.Count) int { return cmp.Compare(a.Arrival(), b.Arrival()) })
	allotted := allotment{}
	for _, c := range fresh {
		key, budget := keyOf(c, c.Deciding()), budgetOf(c)
		_, begun := allotted[key]
		switch {
		case begun || groupOf(c, known) != "":
		case w.hasRoom(used, budget):
			allotted[key] = budget
			used[budget]++
			used[budget.ofOrganization()]++
		default:
			c.Overflow(used[budget] < w.NewGroups.Project)
		}
	}
	return allotted
}

// hasRoom reports whether a project may create one more group.
func (w Writer) hasRoom(used map[budgetKey]int, of budgetKey) bool {
	return used[of] < w.NewGroups.Project && used[of.ofOrganization()] < w.NewGroups.Organization
}

// budgetKeys are the budgets that counts
// may be charged to, in the order of locks.
func budgetKeys(counts []*grouping.Count) []budgetKey {
	seen := map[budgetKey]bool{}
	for _, c := range counts {
		key := budgetOf(c)
		seen[key], seen[key.ofOrganization()] = true, true
	}
	return slices.SortedFunc(maps.Keys(seen), budgetKey.order)
}

// readBudgets returns how many groups each budget has created so far.
func readBudgets(ctx context.Context, tx pgx.Tx, keys []budgetKey) (map[budgetKey]int, error) {
	used := map[budgetKey]int{}
	err := eachBudget(ctx, tx, keys, used, `
		SELECT b.organization, b.project, b.hour, b.founded
		  FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS k (organization, project, hour)
		  JOIN group_budgets b USING (organization, project, hour)`)
	return used, err
}

// lockBudgets locks the budgets of the counts in one order
// and sets in used how many groups they have created by then.
func lockBudgets(ctx context.Context, tx pgx.Tx, counts []*grouping.Count, used map[budgetKey]int) error {
	return eachBudget(ctx, tx, budgetKeys(counts), used, `
		INSERT INTO group_budgets AS b (organization, project, hour, founded)
		SELECT organization, project, hour, 0
		  FROM unnest($1::text[], $2::text[], $3::timestamptz[]) WITH ORDINALITY AS k (organization, project, hour, n) ORDER BY n
		ON CONFLICT (organization, project, hour) DO UPDATE SET founded = b.founded
		RETURNING organization, project, hour, founded`)
}

func eachBudget(ctx context.Context, tx pgx.Tx, keys []budgetKey, used map[budgetKey]int, query string) error {
	organizations, projects, hours := budgetColumns(keys)
	rows, err := tx.Query(ctx, query, organizations, projects, hours)
	if err != nil {
		return err
	}
	var key budgetKey
	var n int
	_, err = pgx.ForEachRow(rows, []any{&key.organization, &key.project, &key.hour, &n}, func() error {
		key.hour = key.hour.UTC()
		used[key] = n
		return nil
	})
	return err
}

func budgetColumns(keys []budgetKey) (organizations, projects []string, hours []time.Time) {
	for _, key := range keys {
		organizations, projects, hours = append(organizations, key.organization), append(projects, key.project), append(hours, key.hour)
	}
	return organizations, projects, hours
}

// charge adds the created groups to their locked budgets, and
// deletes old budgets of the same projects and organizations.
func (a allotment) charge(ctx context.Context, tx pgx.Tx, created map[hashKey]string) error {
	spent := map[budgetKey]int{}
	for key := range created {
		if budget, ok := a[key]; ok {
			spent[budget]++
			spent[budget.ofOrganization()]++
		}
	}
	if len(spent) == 0 {
		return nil
	}
	var keys []budgetKey
	var counts []int
	for key, n := range spent {
		keys, counts = append(keys, key), append(counts, n)
	}
	if err := addFounded(ctx, tx, keys, counts); err != nil {
		return err
	}
	return deleteOldBudgets(ctx, tx, keys)
}

func addFounded(ctx context.Context, tx pgx.Tx, keys []budgetKey, counts []int) error {
	organizations, projects, hours := budgetColumns(keys)
	_, err := tx.Exec(ctx, `
		UPDATE group_budgets b SET founded = b.founded + k.founded
		  FROM unnest($1::text[], $2::text[], $3::timestamptz[], $4::int[]) AS k (organization, project, hour, founded)
		 WHERE (b.organization, b.project, b.hour) = (k.organization, k.project, k.hour)`, organizations, projects, hours, counts)
	return err
}

// deleteOldBudgets leaves those that are in use.
func deleteOldBudgets(ctx context.Context, tx pgx.Tx, keys []budgetKey) error {
	organizations, projects, hours := budgetColumns(keys)
	_, err := tx.Exec(ctx, `
		DELETE FROM group_budgets WHERE (organization, project, hour) IN (
			SELECT b.organization, b.project, b.hour
			  FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS k (organization, project, hour)
			  JOIN group_budgets b ON (b.organization, b.project) = (k.organization, k.project) AND b.hour < k.hour - $4::interval
			   FOR UPDATE OF b SKIP LOCKED)`, organizations, projects, hours, activeBudgetsKept)
	return err
}
