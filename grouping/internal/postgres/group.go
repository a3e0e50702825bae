package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/pg"
)

// ErrNoGroup means that the organization has no such group.
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
	Severities   grouping.Severity
	Environments []string
}

// An Explanation is why a group is one, as stored.
type Explanation struct {
	Version  int                `json:"version" description:"Of the algorithm"`
	Scope    grouping.HashScope `json:"level" enum:"site,message,budget" description:"What the deciding hash covers; budget is the group for what is new beyond the groups that a project may create in an hour"`
	Hash     string             `json:"hash"`
	Language trace.Language     `json:"language"`
	Rule     string             `json:"rule" description:"The rule in words"`
	Parts    []ExplanationPart  `json:"parts"`
}

// ExplanationPart is one thing that a group's hash was made of.
type ExplanationPart struct {
	Kind  string `json:"kind" enum:"type,message,call,frame"`
	Value string `json:"value"`
}

// Bounds of a stored explanation.
const (
	maxParts = 20
	maxPart  = 500 // bytes
)

// bound cuts what is too long.
func (w *Explanation) bound() {
	w.Parts = w.Parts[:min(len(w.Parts), maxParts)]
	for i := range w.Parts {
		w.Parts[i].Value = trace.Cut(w.Parts[i].Value, maxPart)
	}
}

// saveGroups adds the changes to their groups and records how
// many samples each has then had. An inherited group takes
// over the hash for similar groups.
func saveGroups(ctx context.Context, tx pgx.Tx, changes []*change) error {
	var organizations, ids, projects, titles, types, culprits, environments, whys, calls []string
	var counts, samples []int64
	var firsts, lasts, expiries []time.Time
	var levels []int16
	var similar [][]byte
	for _, ch := range changes {
		organizations, ids, projects = append(organizations, ch.Organization), append(ids, ch.group), append(projects, ch.Project)
		titles, types = append(titles, storable(ch.about.Title)), append(types, storable(ch.about.Type))
		culprits, whys = append(culprits, storable(ch.about.Culprit)), append(whys, encodeExplanation(ch.why))
		environments, counts = append(environments, array(ch.Environments)), append(counts, ch.N)
		firsts, lasts, levels = append(firsts, ch.First), append(lasts, ch.Last), append(levels, int16(ch.Severities))
		similar, samples = append(similar, ch.Similar[:]), append(samples, int64(len(ch.Samples)))
		expiries, calls = append(expiries, ch.Expires), append(calls, numbers(ch.calls))
	}
	rows, err := tx.Query(ctx, `
		INSERT INTO error_groups AS g (organization, id, project, title, type, culprit, count, first_seen, last_seen, seen_minute, levels, environments,
			similar_hash, why, samples, expires, calls)
		SELECT organization, id, project, title, type, culprit, count, first_seen, last_seen, date_trunc('minute', last_seen, 'UTC'), levels,
			environments::text[], similar_hash, why::jsonb, samples, expires, calls::integer[]
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
		              $9::timestamptz[], $10::smallint[], $11::text[], $12::bytea[], $13::text[], $15::bigint[], $16::date[], $19::text[]) WITH ORDINALITY
		       AS k (organization, id, project, title, type, culprit, count, first_seen, last_seen, levels, environments, similar_hash, why, samples,
		             expires, calls, n)
		 ORDER BY n
		ON CONFLICT (organization, id) DO UPDATE SET
		       title = coalesce(nullif(excluded.title, ''), g.title), why = CASE excluded.title WHEN '' THEN g.why ELSE excluded.why END,
		       count = g.count + excluded.count,
		       samples = CASE WHEN g.samples < $17 THEN least(g.samples + excluded.samples, $17) ELSE g.samples + least(excluded.samples, $18) END,
		       first_seen = least(g.first_seen, excluded.first_seen), last_seen = greatest(g.last_seen, excluded.last_seen),
		       seen_minute = greatest(g.seen_minute, excluded.seen_minute),
		       levels = g.levels | excluded.levels, similar_hash = excluded.similar_hash,
		       expires = greatest(g.expires, excluded.expires),
		       environments = CASE WHEN excluded.environments <@ g.environments THEN g.environments
		           ELSE array(SELECT DISTINCT e FROM unnest(g.environments || excluded.environments) AS e ORDER BY e LIMIT $14) END
		RETURNING organization, id, samples, xmax = 0`,
		organizations, ids, projects, titles, types, culprits, counts, firsts, lasts, levels, environments, similar, whys, grouping.MaxEnvironments, samples,
		expiries, grouping.MaxSamples, maxReplaced(changes), calls)
	if err != nil {
		return err
	}
	return readSamples(rows, changes)
}

// errExpired means that a group has expired since its hash was
// found. The transaction starts over and creates the group.
var errExpired = errors.New("the group has just expired")

// readSamples reads the numbers of samples, returned in the order sent.
func readSamples(rows pgx.Rows, changes []*change) error {
	n := 0
	var organization, id string
	var samples int64
	var inserted bool
	_, err := pgx.ForEachRow(rows, []any{&organization, &id, &samples, &inserted}, func() error {
		ch := changes[n]
		if ch.Organization != organization || ch.group != id {
			return fmt.Errorf("group %q of %q came back in the place of %q of %q", id, organization, ch.group, ch.Organization)
		}
		if inserted && !ch.created {
			return fmt.Errorf("cannot count errors of group %q: %w", id, errExpired)
		}
		changes[n].samples = samples
		n++
		return nil
	})
	return err
}

func encodeExplanation(w grouping.Explanation) string {
	stored := Explanation{
		Version: w.Version, Scope: w.Scope, Hash: w.Hash.String(), Language: w.Language, Rule: storable(string(w.Rule)), Parts: []ExplanationPart{},
	}
	for _, p := range w.Parts {
		stored.Parts = append(stored.Parts, ExplanationPart{p.Kind, storable(p.Value)})
	}
	stored.bound()
	text, err := json.Marshal(stored)
	if err != nil {
		panic("BUG: cannot encode why: " + err.Error())
	}
	return string(text)
}

func (g *Group) fields() []any {
	return []any{&g.ID, &g.Project, &g.Title, &g.Type, &g.Culprit, &g.Status, &g.Count, &g.FirstSeen, &g.LastSeen, &g.Severities, &g.Environments}
}

// FindGroup returns a group and why it is
// one. tx must act as the organization.
func FindGroup(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (g Group, why Explanation, err error) {
	err = tx.QueryRow(ctx, `SELECT `+groupColumns+`, why FROM error_groups WHERE organization = $1 AND id = $2`, organization, storable(id)).
		Scan(append(g.fields(), &why)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return Group{}, Explanation{}, ErrNoGroup
	}
	why.Rule = grouping.Rule(why.Rule).Text()
	return g, why, err
}
