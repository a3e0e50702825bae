package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/trace"
)

// A Project is one of an organization.
type Project struct{ Organization, Name string }

func projectOf(c *grouping.Count) Project { return Project{c.Organization, c.Project} }

// order is the order of locks.
func (p Project) order(other Project) int {
	return cmp.Or(cmp.Compare(p.Organization, other.Organization), cmp.Compare(p.Name, other.Name))
}

// formerLibrariesKept is for how long groups are
// also found by a project's former libraries.
const formerLibrariesKept = 30 * 24 * time.Hour

// learned is what was learned of a project's packages and messages.
type learned struct {
	grouping.Packages
	Libraries grouping.Libraries `json:"libraries"`
	Values    grouping.Values    `json:"values"`
	Former    []formerLibraries  `json:"former"`           // the newest last
	Taught    []formerValues     `json:"taught,omitempty"` // the newest last; bounded by the values
	Splits    []storedSplit      `json:"splits,omitempty"`
	Maps      bool               `json:"maps,omitempty"`  // the project has source maps; not stored
	Rules     int64              `json:"rules,omitempty"` // the newest version of its rules; not stored

	Owners []grouping.OwnerPaths `json:"owners,omitempty"` // not stored
}

// formerLibraries were a project's libraries until a time.
type formerLibraries struct {
	Libraries grouping.Libraries `json:"libraries"`
	Until     time.Time          `json:"until"`
}

// formerValues is how many values a project had until a time.
type formerValues struct {
	Values int       `json:"values"`
	Until  time.Time `json:"until"`
}

// learned is l in the domain.
func (l *learned) learned() grouping.Learned {
	return grouping.Learned{Libraries: l.Libraries, Values: l.Values, Splits: splitsOf(l.Splits), Maps: l.Maps, Newest: l.Rules, Owners: l.Owners}
}

// at is what was known of a project when errors that were accepted at a time were counted.
func (l *learned) at(accepted time.Time, now grouping.Learned) grouping.Learned {
	for _, former := range l.Former {
		if !accepted.After(former.Until) {
			now.Libraries = former.Libraries
			break
		}
	}
	for _, former := range l.Taught {
		if !accepted.After(former.Until) {
			now.Before = former.Values + 1
			break
		}
	}
	return now
}

// FindLearned returns what was learned of those projects of which
// something was, or that have source maps, rules or owners.
func FindLearned(ctx context.Context, tx pgx.Tx, projects []Project) (map[Project]grouping.Learned, error) {
	found, err := findLearned(ctx, tx, distinct(projects), `SELECT organization, project, jsonb_build_object('libraries', learned->'libraries', 'values',
		learned->'values', 'splits', splits, 'maps', maps, 'rules', rules, 'owners', owners)`+ofLearned)
	all := map[Project]grouping.Learned{}
	for project, l := range found {
		all[project] = l.learned()
	}
	return all, err
}

// ofLearned is what was learned of those projects of which something was, or that have source maps, rules or owners.
const ofLearned = `
		  FROM unnest($1::text[], $2::text[]) AS k (organization, project) LEFT JOIN group_packages USING (organization, project),
		       LATERAL (SELECT jsonb_agg(jsonb_build_object('hash', encode(hash, 'hex'), 'after', after, 'from', error_group)) AS splits
		                  FROM group_splits s WHERE (s.organization, s.project) = (k.organization, k.project)) s,
		       LATERAL (SELECT EXISTS (SELECT FROM source_maps m WHERE (m.organization, m.project) = (k.organization, k.project)) AS maps) m,
		       LATERAL (SELECT max(version) AS rules FROM events e WHERE (e.organization, e.stream) = (k.organization, '` + rulesStream + `' || k.project)) r,
		       LATERAL (SELECT jsonb_agg(jsonb_build_object('since', since, 'paths', (SELECT jsonb_agg(DISTINCT path)
		                         FROM jsonb_array_elements(o.rules) AS rule, jsonb_object_keys(rule->'metadata') AS path)) ORDER BY since) AS owners
		                  FROM error_owners o WHERE (o.organization, o.project) = (k.organization, k.project)) o
		 WHERE maps OR rules IS NOT NULL OR owners IS NOT NULL OR learned->'libraries' <> '{}' OR learned->'values' <> '{}' OR splits IS NOT NULL`

// findFormer returns what was learned of projects
// in which errors had other hashes before.
func findFormer(ctx context.Context, tx pgx.Tx, projects []Project) (map[Project]learned, error) {
	return findLearned(ctx, tx, projects, `
		SELECT organization, project, jsonb_build_object('libraries', learned->'libraries', 'values', learned->'values', 'former', learned->'former')
		  FROM unnest($1::text[], $2::text[]) AS k (organization, project) JOIN group_packages USING (organization, project)
		 WHERE jsonb_array_length(learned->'former') > 0 OR learned->'values' <> '{}'`)
}

func findLearned(ctx context.Context, tx pgx.Tx, projects []Project, query string) (map[Project]learned, error) {
	found := map[Project]learned{}
	if len(projects) == 0 {
		return found, nil
	}
	organizations, names := projectColumns(projects)
	rows, err := tx.Query(ctx, query, organizations, names)
	if err != nil {
		return nil, err
	}
	var p Project
	var text []byte
	_, err = pgx.ForEachRow(rows, []any{&p.Organization, &p.Name, &text}, func() error {
		var l learned
		err := json.Unmarshal(text, &l)
		found[p] = l
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot read what was learned of %d projects: %w", len(projects), err)
	}
	return found, nil
}

// distinct are projects, each once, in the order of locks.
func distinct(projects []Project) []Project {
	return slices.Compact(slices.SortedFunc(slices.Values(projects), Project.order))
}

func projectColumns(projects []Project) (organizations, names []string) {
	for _, p := range projects {
		organizations, names = append(organizations, p.Organization), append(names, p.Name)
	}
	return organizations, names
}

// learn adds the packages and messages of new groups to their projects.
func learn(ctx context.Context, tx pgx.Tx, changes []*change) error {
	created := map[Project][]*change{} // bounded by the changes
	for _, ch := range changes {
		if ch.created && !ch.Overflowed() {
			created[projectOf(ch.Count)] = append(created[projectOf(ch.Count)], ch)
		}
	}
	if len(created) == 0 {
		return nil
	}
	families, err := variedFamilies(ctx, tx, created)
	if err != nil {
		return err
	}
	maps.DeleteFunc(created, func(p Project, groups []*change) bool {
		return len(families[p]) == 0 && !slices.ContainsFunc(groups, func(ch *change) bool { return len(ch.packages) > 0 })
	})
	projects := slices.SortedFunc(maps.Keys(created), Project.order)
	known, err := lockLearned(ctx, tx, projects)
	if err != nil {
		return err
	}
	for p, l := range known {
		l.add(created[p])
		values := len(l.Values)
		for _, similar := range families[p] {
			messages, err := messagesOf(ctx, tx, p, similar)
			if err != nil {
				return err
			}
			l.Values.Learn(similar, messages)
		}
		if len(l.Values) > values {
			l.Taught = append(l.Taught, formerValues{values, lastAccepted(created[p])})
		}
		known[p] = l
	}
	return saveLearned(ctx, tx, projects, known)
}

// variedFamilies are the loosest hashes of new groups
// whose messages may have values to learn.
func variedFamilies(ctx context.Context, tx pgx.Tx, created map[Project][]*change) (map[Project][]grouping.Hash, error) {
	type family struct {
		Project
		similar grouping.Hash
	}
	fresh := map[family]int{} // bounded by the changes
	for p, groups := range created {
		for _, ch := range groups {
			fresh[family{p, ch.Similar}]++
		}
	}
	var organizations, projects []string
	var hashes [][]byte
	for f := range fresh {
		organizations, projects, hashes = append(organizations, f.Organization), append(projects, f.Name), append(hashes, f.similar[:])
	}
	rows, err := tx.Query(ctx, `
		SELECT organization, project, similar_hash, n FROM unnest($1::text[], $2::text[], $3::bytea[]) AS k (organization, project, similar_hash),
		       LATERAL (SELECT count(*) AS n FROM (SELECT FROM error_groups g
		         WHERE (g.organization, g.project, g.similar_hash) = (k.organization, k.project, k.similar_hash) LIMIT $4) f) c`,
		organizations, projects, hashes, 2*grouping.MaxFamily)
	if err != nil {
		return nil, fmt.Errorf("cannot count groups of a family: %w", err)
	}
	varied := map[Project][]grouping.Hash{}
	var f family
	var text []byte
	var groups int
	_, err = pgx.ForEachRow(rows, []any{&f.Organization, &f.Name, &text, &groups}, func() error {
		copy(f.similar[:], text)
		if grouping.Varied(groups, fresh[f]) {
			varied[f.Project] = append(varied[f.Project], f.similar)
		}
		return nil
	})
	for _, hashes := range varied {
		slices.SortFunc(hashes, func(a, b grouping.Hash) int { return bytes.Compare(a[:], b[:]) })
	}
	return varied, err
}

// messagesOf are the messages of a family's newest groups.
func messagesOf(ctx context.Context, tx pgx.Tx, p Project, similar grouping.Hash) ([][][]byte, error) {
	rows, err := tx.Query(ctx, `
		SELECT why->>'language', exceptions FROM (SELECT organization, id, why FROM error_groups
		        WHERE organization = $1 AND project = $2 AND similar_hash = $3 ORDER BY first_seen DESC, id LIMIT $4) g,
		       LATERAL (SELECT exceptions FROM occurrences o WHERE o.organization = g.organization AND o.error_group = g.id ORDER BY o.slot LIMIT 1) o`,
		p.Organization, p.Name, similar[:], grouping.MaxFamily)
	if err != nil {
		return nil, fmt.Errorf("cannot read messages of a family: %w", err)
	}
	var g grouping.Grouper
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([][]byte, error) {
		var language trace.Language
		var exceptions []Exception
		err := row.Scan(&language, &exceptions)
		return g.Message(language, parsed(exceptions)), err
	})
}

func saveLearned(ctx context.Context, tx pgx.Tx, projects []Project, known map[Project]learned) error {
	if len(projects) == 0 {
		return nil
	}
	var texts []string
	for _, p := range projects {
		text, err := json.Marshal(known[p])
		if err != nil {
			panic("BUG: cannot encode what was learned: " + err.Error())
		}
		texts = append(texts, string(text))
	}
	organizations, names := projectColumns(projects)
	_, err := tx.Exec(ctx, `
		UPDATE group_packages g SET learned = k.learned::jsonb
		  FROM unnest($1::text[], $2::text[], $3::text[]) AS k (organization, project, learned)
		 WHERE (g.organization, g.project) = (k.organization, k.project)`, organizations, names, texts)
	return err
}

// lockLearned locks what was learned of projects,
// in one order, until the transaction ends.
func lockLearned(ctx context.Context, tx pgx.Tx, projects []Project) (map[Project]learned, error) {
	return findLearned(ctx, tx, projects, `
		INSERT INTO group_packages AS g (organization, project, learned)
		SELECT organization, project, '{"libraries": {}, "values": {}, "former": []}'
		  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (organization, project, n) ORDER BY n
		ON CONFLICT (organization, project) DO UPDATE SET learned = '{"values": {}}'::jsonb || g.learned
		RETURNING organization, project, learned`)
}

// add learns from new groups. If the libraries change,
// groups are also found by the former ones for a while.
func (l *learned) add(created []*change) {
	since := l.Kinds
	for _, ch := range created {
		l.Add(ch.packages)
	}
	if !l.Due(since) {
		return
	}
	now := lastAccepted(created)
	l.Former = slices.DeleteFunc(l.Former, func(f formerLibraries) bool { return f.expired(now) })
	if libraries := l.Packages.Libraries(); !maps.Equal(libraries, l.Libraries) {
		l.Former = append(l.Former, formerLibraries{l.Libraries, now})
		l.Libraries = libraries
	}
}

// lastAccepted is when the last error of some groups was accepted.
func lastAccepted(groups []*change) (at time.Time) {
	for _, ch := range groups {
		if last := ch.LastAccepted().UTC(); last.After(at) {
			at = last
		}
	}
	return at
}

// expired reports whether groups are no longer found by f.
func (f formerLibraries) expired(at time.Time) bool {
	return at.After(f.Until.Add(formerLibrariesKept))
}

// hashes are those of an error before its project's libraries
// changed and before words of its message became values.
func (l learned) hashes(g *grouping.Grouper, c *grouping.Count) (hashes []grouping.ScopedHash) {
	e := c.Samples[0].Error
	rules := e.Learned.Rules
	for _, former := range l.Former {
		if e.Learned = (grouping.Learned{Libraries: former.Libraries, Values: l.Values, Rules: rules}); !former.expired(c.Hour) {
			hashes = append(hashes, g.Fingerprint(e).Joining()...)
		}
	}
	e.Learned = grouping.Learned{Libraries: l.Libraries, Values: l.Values, Rules: rules}
	for _, e.Learned.Before = range g.Fingerprint(e).Former() {
		hashes = append(hashes, g.Fingerprint(e).Joining()...)
	}
	return hashes
}
