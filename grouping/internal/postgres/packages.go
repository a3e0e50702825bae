package postgres

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
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

// learned is what was learned of a project's packages.
type learned struct {
	grouping.Packages
	Libraries grouping.Libraries `json:"libraries"`
	Former    []formerLibraries  `json:"former"` // the newest last
}

// formerLibraries were a project's libraries until a time.
type formerLibraries struct {
	Libraries grouping.Libraries `json:"libraries"`
	Until     time.Time          `json:"until"`
}

// FindLibraries returns the libraries of those projects that have some.
func FindLibraries(ctx context.Context, tx pgx.Tx, projects []Project) (map[Project]grouping.Libraries, error) {
	found, err := findLearned(ctx, tx, distinct(projects), `SELECT organization, project, jsonb_build_object('libraries', learned->'libraries')
		FROM unnest($1::text[], $2::text[]) AS k (organization, project) JOIN group_packages USING (organization, project)
		WHERE learned->'libraries' <> '{}'`)
	libraries := map[Project]grouping.Libraries{}
	for project, l := range found {
		libraries[project] = l.Libraries
	}
	return libraries, err
}

// findFormer returns the former libraries of projects.
func findFormer(ctx context.Context, tx pgx.Tx, projects []Project) (map[Project]learned, error) {
	return findLearned(ctx, tx, projects, `SELECT organization, project, jsonb_build_object('former', learned->'former')
		FROM unnest($1::text[], $2::text[]) AS k (organization, project) JOIN group_packages USING (organization, project)
		WHERE jsonb_array_length(learned->'former') > 0`)
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
		return nil, fmt.Errorf("cannot read the libraries of %d projects: %w", len(projects), err)
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

// learn adds the packages of new groups to their projects.
func learn(ctx context.Context, tx pgx.Tx, changes []*change) error {
	created := map[Project][]*change{}
	for _, ch := range changes {
		if p := projectOf(ch.Count); ch.created && len(ch.packages) > 0 {
			created[p] = append(created[p], ch)
		}
	}
	projects := slices.SortedFunc(maps.Keys(created), Project.order)
	known, err := lockLearned(ctx, tx, projects)
	if err != nil {
		return err
	}
	for p, l := range known {
		l.add(created[p])
		known[p] = l
	}
	return saveLearned(ctx, tx, projects, known)
}

func saveLearned(ctx context.Context, tx pgx.Tx, projects []Project, known map[Project]learned) error {
	if len(projects) == 0 {
		return nil
	}
	var texts []string
	for _, p := range projects {
		text, err := json.Marshal(known[p])
		if err != nil {
			panic("BUG: cannot encode packages: " + err.Error())
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
		SELECT organization, project, '{"libraries": {}, "former": []}'
		  FROM unnest($1::text[], $2::text[]) WITH ORDINALITY AS k (organization, project, n) ORDER BY n
		ON CONFLICT (organization, project) DO UPDATE SET learned = g.learned
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
	now := created[len(created)-1].Hour
	l.Former = slices.DeleteFunc(l.Former, func(f formerLibraries) bool { return f.expired(now) })
	if libraries := l.Packages.Libraries(); !maps.Equal(libraries, l.Libraries) {
		l.Former = append(l.Former, formerLibraries{l.Libraries, now})
		l.Libraries = libraries
	}
}

// expired reports whether groups are no longer found by f.
func (f formerLibraries) expired(at time.Time) bool {
	return at.After(f.Until.Add(formerLibrariesKept))
}

// hashes are those of an error by the former libraries.
func (l learned) hashes(g *grouping.Grouper, c *grouping.Count) (hashes []grouping.ScopedHash) {
	e := c.Samples[0].Error
	for _, former := range l.Former {
		if e.Libraries = former.Libraries; !former.expired(c.Hour) {
			hashes = append(hashes, g.Fingerprint(e).Joining()...)
		}
	}
	return hashes
}
