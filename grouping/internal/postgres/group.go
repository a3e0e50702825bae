package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/shared/pg"
)

// ErrNoGroup says that the organization has no such group.
var ErrNoGroup = errors.New("no such error group")

// Group is an error group as it is stored.
type Group struct {
	ID           string
	Project      string
	Title        string
	Type         string
	Culprit      string
	Status       grouping.Status
	Count        int64
	FirstSeen    time.Time
	LastSeen     time.Time
	Levels       grouping.Severity
	Environments []string
}

// Why is how a group came about, as it is stored.
type Why struct {
	Version  int               `json:"version"`
	Level    grouping.Level    `json:"level"`
	Hash     string            `json:"hash"`
	Language grouping.Language `json:"language"`
	Rule     string            `json:"rule"`
	Parts    []WhyPart         `json:"parts"`
}

// WhyPart is one thing that a group's hash was made of.
type WhyPart struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

// saveGroups adds the changes to their groups and notes how many samples each has then had.
func saveGroups(ctx context.Context, tx pgx.Tx, changes []*change) error {
	var organizations, ids, projects, titles, types, culprits, environments, whys []string
	var counts, samples []int64
	var firsts, lasts []time.Time
	var levels []int16
	var similar [][]byte
	for _, ch := range changes {
		organizations, ids, projects = append(organizations, ch.Organization), append(ids, ch.group), append(projects, ch.Project)
		titles, types = append(titles, storable(ch.about.Title)), append(types, storable(ch.about.Type))
		culprits, whys = append(culprits, storable(ch.about.Culprit)), append(whys, encodeWhy(ch.why))
		environments, counts = append(environments, array(ch.Environments)), append(counts, ch.N)
		firsts, lasts, levels = append(firsts, ch.First), append(lasts, ch.Last), append(levels, int16(ch.Severities))
		similar, samples = append(similar, ch.Similar[:]), append(samples, int64(len(ch.Samples)))
	}
	rows, err := tx.Query(ctx, `
		INSERT INTO error_groups AS g (organization, id, project, title, type, culprit, count, first_seen, last_seen, levels, environments,
			similar_hash, why, samples)
		SELECT organization, id, project, title, type, culprit, count, first_seen, last_seen, levels, environments::text[], similar_hash, why::jsonb, samples
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
		              $9::timestamptz[], $10::smallint[], $11::text[], $12::bytea[], $13::text[], $15::bigint[]) WITH ORDINALITY
		       AS k (organization, id, project, title, type, culprit, count, first_seen, last_seen, levels, environments, similar_hash, why, samples, n)
		 ORDER BY n
		ON CONFLICT (organization, id) DO UPDATE SET
		       title = coalesce(nullif(excluded.title, ''), g.title), why = CASE excluded.title WHEN '' THEN g.why ELSE excluded.why END,
		       count = g.count + excluded.count, samples = g.samples + excluded.samples,
		       first_seen = least(g.first_seen, excluded.first_seen), last_seen = greatest(g.last_seen, excluded.last_seen),
		       levels = g.levels | excluded.levels,
		       environments = CASE WHEN excluded.environments <@ g.environments THEN g.environments
		           ELSE array(SELECT DISTINCT e FROM unnest(g.environments || excluded.environments) AS e ORDER BY e LIMIT $14) END
		RETURNING organization, id, samples`,
		organizations, ids, projects, titles, types, culprits, counts, firsts, lasts, levels, environments, similar, whys, grouping.MaxEnvironments, samples)
	if err != nil {
		return err
	}
	return readSamples(rows, changes)
}

// readSamples reads the numbers of samples, which come back in the order in which they were sent.
func readSamples(rows pgx.Rows, changes []*change) error {
	n := 0
	var organization, id string
	var samples int64
	_, err := pgx.ForEachRow(rows, []any{&organization, &id, &samples}, func() error {
		if ch := changes[n]; ch.Organization != organization || ch.group != id {
			return fmt.Errorf("group %q of %q came back in the place of %q of %q", id, organization, ch.group, ch.Organization)
		}
		changes[n].samples = samples
		n++
		return nil
	})
	return err
}

func encodeWhy(w grouping.Why) string {
	stored := Why{Version: w.Version, Level: w.Level, Hash: w.Hash.String(), Language: w.Language, Rule: storable(string(w.Rule)), Parts: []WhyPart{}}
	for _, p := range w.Parts {
		stored.Parts = append(stored.Parts, WhyPart{p.Kind, storable(p.Value)})
	}
	text, err := json.Marshal(stored)
	if err != nil {
		panic("BUG: cannot encode why: " + err.Error())
	}
	return string(text)
}

// GroupQuery says which groups are wanted. Zero members do not filter.
type GroupQuery struct {
	Project      string // empty: of the whole organization
	Status       grouping.Status
	From, To     time.Time // groups seen in [From, To)
	Levels       grouping.Severity
	Environments []string
	Words        []string // all of them occur in title, type or culprit, whatever their case
	After        GroupCursor
	Limit        int
}

// GroupCursor is a place in a list of groups, the one last seen first.
type GroupCursor struct {
	LastSeen time.Time `json:"l"`
	ID       string    `json:"i"`
}

// Cursor is the place of a group in a list.
func (g Group) Cursor() GroupCursor { return GroupCursor{g.LastSeen, g.ID} }

const groupColumns = `id, project, title, type, culprit, status, count, first_seen, last_seen, levels, environments`

// Groups lists groups, the one last seen first. tx acts as the organization.
func Groups(ctx context.Context, tx pgx.Tx, organization pg.Organization, q GroupQuery) ([]Group, error) {
	s := selection{}
	s.add(true, "organization = ?", organization)
	s.add(q.Project != "", "project = ?", q.Project)
	s.add(q.Status != "", "status = ?", string(q.Status))
	s.add(!q.From.IsZero(), "last_seen >= ?", q.From)
	s.add(!q.To.IsZero(), "first_seen < ?", q.To)
	s.add(q.Levels != 0, "levels & ?::smallint <> 0", int16(q.Levels))
	s.add(len(q.Environments) > 0, "environments && ?::text[]", q.Environments)
	for _, word := range q.Words {
		s.add(true, "strpos(lower(title || ' ' || type || ' ' || culprit), lower(?)) > 0", word)
	}
	s.add(q.After != GroupCursor{}, "(last_seen, id) < (?, ?)", q.After.LastSeen, q.After.ID)
	s.args = append(s.args, q.Limit)
	rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT %s FROM error_groups WHERE %s ORDER BY last_seen DESC, id DESC LIMIT $%d`,
		groupColumns, strings.Join(s.conditions, " AND "), len(s.args)), s.args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (g Group, err error) {
		return g, row.Scan(g.fields()...)
	})
}

// selection collects the conditions of a query and their arguments.
type selection struct {
	conditions []string
	args       []any
}

// add adds a condition, in which each "?" stands for an argument, if it is wanted.
func (s *selection) add(wanted bool, condition string, args ...any) {
	if !wanted {
		return
	}
	for _, arg := range args {
		s.args = append(s.args, arg)
		condition = strings.Replace(condition, "?", fmt.Sprintf("$%d", len(s.args)), 1)
	}
	s.conditions = append(s.conditions, condition)
}

func (g *Group) fields() []any {
	return []any{&g.ID, &g.Project, &g.Title, &g.Type, &g.Culprit, &g.Status, &g.Count, &g.FirstSeen, &g.LastSeen, &g.Levels, &g.Environments}
}

// FindGroup returns a group and why it is one. tx acts as the organization.
func FindGroup(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (g Group, why Why, err error) {
	err = tx.QueryRow(ctx, `SELECT `+groupColumns+`, why FROM error_groups WHERE organization = $1 AND id = $2`, organization, storable(id)).
		Scan(append(g.fields(), &why)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return Group{}, Why{}, ErrNoGroup
	}
	why.Rule = grouping.Rule(why.Rule).Words()
	return g, why, err
}

// SimilarGroups lists groups of the same project that may be about the same thing, the one last seen first.
func SimilarGroups(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string, limit int) ([]string, error) {
	rows, err := tx.Query(ctx, `
		SELECT s.id FROM error_groups g JOIN error_groups s USING (organization, project, similar_hash)
		 WHERE g.organization = $1 AND g.id = $2 AND s.id <> g.id ORDER BY s.last_seen DESC, s.id LIMIT $3`, organization, id, limit)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
