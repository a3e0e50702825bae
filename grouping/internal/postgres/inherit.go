package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
)

// scopeInherited marks deciding hashes of groups that were found by former hashes.
const scopeInherited grouping.HashScope = "inherited"

// scopeRules begins the mark of those that were found by the rules before a
// version. Of each version a group inherits one hash: what else it would have
// had before is told apart by the rules, and becomes groups of its own.
const scopeRules = "rules/"

func scopeOf(version int64) grouping.HashScope {
	return scopeRules + grouping.HashScope(strconv.FormatInt(version, 10))
}

// A legacy is the group that inherits a hash.
type legacy struct {
	group string
	scope grouping.HashScope
}

// inheritedGroups are those that former rules created, by today's deciding hash.
type inheritedGroups map[hashKey]legacy

// former is a hash that an error would have had before.
type former struct {
	grouping.ScopedHash
	scope grouping.HashScope // as which it is inherited
}

// findInherited finds groups of counts without a known hash by their
// former hashes. Only new errors cost that, and only in a project that
// has former rules. Where several counts share a deciding hash, the
// first that has a group decides for all.
func (w Writer) findInherited(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (inheritedGroups, error) {
	taught, err := findFormer(ctx, tx, projectsOf(counts))
	if err != nil {
		return nil, err
	}
	counts = slices.SortedFunc(slices.Values(counts), func(a, b *grouping.Count) int { return cmp.Compare(a.Arrival(), b.Arrival()) })
	hashes, err := w.formerHashes(ctx, tx, counts, taught)
	if err != nil {
		return nil, err
	}
	var rows []hashRow
	for i, c := range counts {
		for _, f := range hashes[i] {
			rows = append(rows, hashRow{hashKey: keyOf(c, f.ScopedHash)})
		}
	}
	known, err := findHashes(ctx, tx, rows)
	if err != nil || len(known) == 0 {
		return inheritedGroups{}, err
	}
	taken, err := findTaken(ctx, tx, counts, hashes, known)
	if err != nil {
		return nil, err
	}
	found := inheritedGroups{}
	for i, c := range counts {
		key := keyOf(c, c.Deciding())
		for _, f := range hashes[i] {
			heir := legacy{known[keyOf(c, f.ScopedHash)], f.scope}
			if of := (taking{c.Organization, heir}); heir.group == "" || found[key].group != "" || taken[of] {
				continue
			} else if heir.scope != scopeInherited {
				taken[of] = true
			}
			found[key] = heir
		}
	}
	return found, nil
}

// A taking is a hash that a group has inherited by rules.
type taking struct {
	organization string
	legacy
}

// findTaken finds which groups have inherited a hash of a version already.
func findTaken(ctx context.Context, tx pgx.Tx, counts []*grouping.Count, hashes [][]former, known map[hashKey]string) (map[taking]bool, error) {
	taken := map[taking]bool{}
	var organizations, groups, scopes []string
	for i, c := range counts {
		for _, f := range hashes[i] {
			if group := known[keyOf(c, f.ScopedHash)]; group != "" && f.scope != scopeInherited {
				organizations, groups, scopes = append(organizations, c.Organization), append(groups, group), append(scopes, string(f.scope))
			}
		}
	}
	if len(groups) == 0 {
		return taken, nil
	}
	rows, err := tx.Query(ctx, `SELECT DISTINCT h.organization, h.error_group, h.level
		FROM unnest($1::text[], $2::text[], $3::text[]) AS k (organization, error_group, level)
		JOIN group_hashes h USING (organization, error_group, level) WHERE h.level LIKE '`+scopeRules+`%'`, organizations, groups, scopes)
	if err != nil {
		return nil, err
	}
	var t taking
	_, err = pgx.ForEachRow(rows, []any{&t.organization, &t.group, &t.scope}, func() error {
		taken[t] = true
		return nil
	})
	return taken, err
}

// formerHashes returns the former hashes of each count. Those
// of another grouping.Version would be added here.
func (w Writer) formerHashes(ctx context.Context, tx pgx.Tx, counts []*grouping.Count, taught map[Project]learned) (hashes [][]former, err error) {
	var g grouping.Grouper
	hashes = make([][]former, len(counts))
	for i, c := range counts {
		if l, ok := taught[projectOf(c)]; ok {
			for _, hash := range l.hashes(&g, c) {
				hashes[i] = append(hashes[i], former{hash, scopeInherited})
			}
		}
		byRules, err := w.byFormerRules(ctx, tx, &g, c)
		if err != nil {
			return nil, err
		}
		hashes[i] = append(hashes[i], byRules...)
	}
	return hashes, nil
}

// byFormerRules are the hashes of an error by the rules before those that
// hold for it, unless they said themselves of which group it was.
func (w Writer) byFormerRules(ctx context.Context, tx pgx.Tx, g *grouping.Grouper, c *grouping.Count) (hashes []former, err error) {
	if len(c.Samples) == 0 || c.Samples[0].Error.Learned.Rules == nil || w.Rules == nil {
		return nil, nil
	}
	e := c.Samples[0].Error
	version := e.Learned.Rules.Version
	before, err := w.Rules.former(ctx, tx, projectOf(c), e.Learned, c.Hour)
	if err != nil {
		return nil, err
	}
	for _, e.Learned.Rules = range before {
		for _, hash := range g.Fingerprint(e).Joining() {
			if hash.Scope != grouping.ScopeRule {
				hashes = append(hashes, former{hash, scopeOf(version)})
			}
		}
	}
	return hashes, nil
}

// projectsOf are the projects of counts, each once.
func projectsOf(counts []*grouping.Count) (projects []Project) {
	for _, c := range counts {
		projects = append(projects, projectOf(c))
	}
	return distinct(projects)
}

// claim maps the deciding hashes to their groups, as far as these
// have room, and adds them to known; others are inherited again next
// time. Where another transaction was faster, its group counts.
func (h inheritedGroups) claim(ctx context.Context, tx pgx.Tx, known map[hashKey]string) error {
	var rows, learned, ruled []hashRow
	for key, heir := range h {
		rows = append(rows, hashRow{key, heir.scope, heir.group})
		known[key] = heir.group
	}
	slices.SortFunc(rows, hashRow.order)
	for _, r := range rows {
		if r.scope == scopeInherited {
			learned = append(learned, r)
		} else {
			ruled = append(ruled, r)
		}
	}
	claimed, err := claimRoom(ctx, tx, `h.level = 'inherited'`, learned)
	if err != nil {
		return fmt.Errorf("cannot inherit: %w", err)
	}
	byRules, err := claimRoom(ctx, tx, `h.level LIKE '`+scopeRules+`%'`, ruled)
	if err != nil {
		return fmt.Errorf("cannot inherit by rules: %w", err)
	}
	lost := slices.DeleteFunc(rows, func(r hashRow) bool { return claimed[r.hashKey]+byRules[r.hashKey] != "" })
	joined, err := findHashes(ctx, tx, lost)
	if err != nil {
		return err
	}
	maps.Copy(known, joined)
	return nil
}
