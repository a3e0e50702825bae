package postgres

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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
	FirstRelease string // of the first error; empty: it named none
	LastRelease  string // of the last error that named one; empty: none did
	Version      int64  // how many decisions there are about it
	MergedInto   string
	Members      int // groups that are merged into it, whose numbers are in its own
	State        grouping.State
}

// An Explanation is why a group is one, as stored.
type Explanation struct {
	Version  int                `json:"version" description:"Of the algorithm"`
	Scope    grouping.HashScope `json:"level" enum:"site,message,split,rule,budget" description:"What the deciding hash covers; rule is what a rule of the project says, budget is the group for what is new beyond the groups that a project may create in an hour"`
	Hash     string             `json:"hash"`
	Language trace.Language     `json:"language"`
	Rule     string             `json:"rule" description:"The rule in words"`
	Parts    []ExplanationPart  `json:"parts"`
}

// ExplanationPart is one thing that a group's hash was made of.
type ExplanationPart struct {
	Kind  string `json:"kind" enum:"type,message,call,frame,group,rule,value" description:"rule is one of the project's, as it was written when the group was founded, and value what it compares"`
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
func saveGroups(ctx context.Context, tx pgx.Tx, changes []*change, maxReplaced int) error {
	var organizations, ids, projects, titles, kinds, culprits, environments, whys, calls []string
	var counts, samples []int64
	var firsts, lasts, expiries, arrived []time.Time
	var levels []int16
	var similar [][]byte
	var firstReleases, lastReleases, releases, types []string
	var lastEntries []time.Time
	for _, ch := range changes {
		first, last := ch.Releases()
		releases = append(releases, array(ch.SeenReleases()))
		firstReleases, lastReleases = append(firstReleases, storable(first)), append(lastReleases, storable(last))
		organizations, ids, projects = append(organizations, ch.Organization), append(ids, ch.row), append(projects, ch.Project)
		titles, kinds = append(titles, storable(ch.about.Title)), append(kinds, storable(ch.about.Type))
		culprits, whys = append(culprits, storable(ch.about.Culprit)), append(whys, encodeExplanation(ch.why))
		environments, counts = append(environments, array(ch.Environments)), append(counts, ch.N)
		firsts, lasts, levels = append(firsts, ch.First), append(lasts, ch.Last), append(levels, int16(ch.Severities))
		similar, samples = append(similar, hashBytes(ch.Similar)), append(samples, int64(len(ch.Samples)))
		expiries, calls = append(expiries, ch.Expires), append(calls, numbers(ch.calls))
		arrived = append(arrived, ch.LastAccepted().UTC())
		types, lastEntries = append(types, array(ch.Entries.Types)), append(lastEntries, ch.Entries.Last)
	}
	rows, err := tx.Query(ctx, `
		INSERT INTO error_groups AS g (organization, id, project, title, type, culprit, count, first_seen, last_seen, seen_minute, levels, environments,
			similar_hash, why, samples, expires, calls, first_release, last_release, arrived, releases, entry_types, last_entry)
		SELECT organization, id, project, title, type, culprit, count, first_seen, last_seen, date_trunc('minute', last_seen, 'UTC'), levels,
			environments::text[], similar_hash, why::json, samples, expires, calls::integer[], first_release, last_release, arrived,
			releases::text[], entry_types::text[], last_entry
		  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::timestamptz[],
		              $9::timestamptz[], $10::smallint[], $11::text[], $12::bytea[], $13::text[], $15::bigint[], $16::date[], $19::text[],
		              $20::text[], $21::text[], $22::date[], $23::text[], $25::text[], $26::timestamptz[]) WITH ORDINALITY
		       AS k (organization, id, project, title, type, culprit, count, first_seen, last_seen, levels, environments, similar_hash, why, samples,
		             expires, calls, first_release, last_release, arrived, releases, entry_types, last_entry, n)
		 ORDER BY n
		ON CONFLICT (organization, id) DO UPDATE SET
		       title = coalesce(nullif(excluded.title, ''), g.title), why = CASE excluded.title WHEN '' THEN g.why ELSE excluded.why END,
		       count = g.count + excluded.count,
		       samples = CASE WHEN g.samples < $17 THEN least(g.samples + excluded.samples, $17) ELSE g.samples + least(excluded.samples, $18) END,
		       first_seen = least(g.first_seen, excluded.first_seen), last_seen = greatest(g.last_seen, excluded.last_seen),
		       seen_minute = greatest(g.seen_minute, excluded.seen_minute),
		       levels = g.levels | excluded.levels, similar_hash = coalesce(nullif(excluded.similar_hash, ''), g.similar_hash),
		       expires = greatest(g.expires, excluded.expires), arrived = greatest(g.arrived, excluded.arrived),
		       first_release = CASE WHEN excluded.first_seen < g.first_seen THEN excluded.first_release ELSE g.first_release END,
		       last_release = CASE WHEN excluded.last_seen >= g.last_seen AND excluded.last_release <> '' THEN excluded.last_release ELSE g.last_release END,
		       releases = CASE WHEN excluded.releases <@ g.releases THEN g.releases
		           ELSE (SELECT all_of[greatest(1, cardinality(all_of) + 1 - $24):]
		                   FROM (SELECT g.releases || array(SELECT r FROM unnest(excluded.releases) AS r WHERE r <> ALL (g.releases)) AS all_of) added) END,
		       last_entry = greatest(g.last_entry, excluded.last_entry),
		       entry_types = CASE WHEN excluded.entry_types <@ g.entry_types OR g.entry_types = '{""}' THEN g.entry_types
		           ELSE (SELECT CASE WHEN count(*) > $27 OR bool_or(e = '') THEN '{""}' ELSE array_agg(e) END
		                   FROM (SELECT DISTINCT e FROM unnest(g.entry_types || excluded.entry_types) AS e) all_of) END,
		       environments = CASE WHEN excluded.environments <@ g.environments THEN g.environments
		           ELSE array(SELECT DISTINCT e FROM unnest(g.environments || excluded.environments) AS e ORDER BY e LIMIT $14) END
		RETURNING organization, id, samples, count, xmax = 0, status <> 'unresolved', merged_into, members > 0,
		       coalesce((decided->>'splits')::integer, 0), (decided->'spike'->>'hour')::timestamptz`,
		organizations, ids, projects, titles, kinds, culprits, counts, firsts, lasts, levels, environments, similar, whys, grouping.MaxEnvironments, samples,
		expiries, grouping.MaxSamples, maxReplaced, calls, firstReleases, lastReleases, arrived, releases, grouping.MaxGroupReleases, types, lastEntries,
		grouping.MaxEntryTypes)
	if err != nil {
		return err
	}
	return readSamples(rows, changes)
}

// Both mean that a transaction starts over.
var (
	errExpired = errors.New("the group has just expired") // since its hash was found
	ErrMoved   = errors.New("the group was just merged, split or taken out of another")
)

// readSamples reads the numbers of samples, returned in the order sent.
func readSamples(rows pgx.Rows, changes []*change) error {
	n := 0
	var organization, id, into string
	var samples, count int64
	var inserted, decided, heads bool
	var splits int
	var spiked *time.Time
	_, err := pgx.ForEachRow(rows, []any{&organization, &id, &samples, &count, &inserted, &decided, &into, &heads, &splits, &spiked}, func() error {
		ch := changes[n]
		if ch.Organization != organization || ch.row != id {
			return fmt.Errorf("group %q of %q came back in the place of %q of %q", id, organization, ch.row, ch.Organization)
		}
		switch {
		case inserted && !ch.created:
			return fmt.Errorf("cannot count errors of group %q: %w", id, errExpired)
		case into != ch.into || heads != ch.heads || splits > ch.splits:
			return fmt.Errorf("cannot count errors of group %q: %w", id, ErrMoved)
		}
		ch.samples, ch.count, ch.decided = samples, count, decided
		if spiked != nil {
			ch.spiked = *spiked
		}
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
	return []any{
		&g.ID, &g.Project, &g.Title, &g.Type, &g.Culprit, &g.Status, &g.Count, &g.FirstSeen, &g.LastSeen, &g.Severities, &g.Environments,
		&g.FirstRelease, &g.LastRelease, &g.Version, &g.MergedInto, &g.Members, &g.State,
	}
}

// FindGroup returns a group and why it is one; instead of a member,
// its head. tx must act as the organization.
func FindGroup(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (g Group, why Explanation, err error) {
	err = tx.QueryRow(ctx, `SELECT `+groupColumns+`, why FROM error_groups
		WHERE organization = $1 AND id = `+headOf+` AND merged_into = ''`, organization, storable(id)).
		Scan(append(g.fields(), &why)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return Group{}, Explanation{}, ErrNoGroup
	}
	why.Rule = grouping.Rule(why.Rule).Text()
	return g, why, err
}

// maxHashes bounds the stricter hashes of one group: an error
// whose trace always differs must not fill the table. Others
// are found by the deciding hash. As many may be inherited.
const maxHashes = 100

// hashKey identifies a hash: hashes are a project's own.
type hashKey struct {
	organization, project string
	version               int
	hash                  grouping.Hash
}

// hashRow is a hash and the group that it belongs to.
type hashRow struct {
	hashKey
	scope grouping.HashScope
	group string
}

// hashColumns are rows as the arrays of a statement.
type hashColumns struct {
	organizations, projects []string
	versions                []int16
	hashes                  [][]byte
	scopes, groups          []string
}

func columnsOf(rows []hashRow) (c hashColumns) {
	for _, r := range rows {
		c.organizations, c.projects = append(c.organizations, r.organization), append(c.projects, r.project)
		c.versions = append(c.versions, int16(r.version)) //nolint:gosec // versions of the algorithm are few
		c.hashes, c.scopes, c.groups = append(c.hashes, r.hash[:]), append(c.scopes, string(r.scope)), append(c.groups, r.group)
	}
	return c
}

// order is the order of locks.
func (r hashRow) order(other hashRow) int {
	return cmp.Or(cmp.Compare(r.organization, other.organization), cmp.Compare(r.project, other.project),
		bytes.Compare(r.hash[:], other.hash[:]), cmp.Compare(r.version, other.version))
}

// findKnown returns the groups of the counts' known
// hashes. A stricter hash is known only if the deciding
// one is, so a flood of new errors costs one lookup each.
func findKnown(ctx context.Context, tx pgx.Tx, counts []*grouping.Count) (map[hashKey]string, error) {
	var deciding, stricter []hashRow
	for _, c := range counts {
		deciding = appendRows(deciding, c, c.Hashes[len(c.Hashes)-1:])
	}
	known, err := findHashes(ctx, tx, deciding)
	if err != nil {
		return nil, err
	}
	for _, c := range counts {
		if known[keyOf(c, c.Deciding())] != "" {
			stricter = appendRows(stricter, c, c.Hashes[:len(c.Hashes)-1])
		}
	}
	found, err := findHashes(ctx, tx, stricter)
	if err != nil {
		return nil, err
	}
	maps.Copy(known, found)
	return known, nil
}

func appendRows(rows []hashRow, c *grouping.Count, prints []grouping.ScopedHash) []hashRow {
	for _, p := range prints {
		rows = append(rows, hashRow{hashKey: keyOf(c, p), scope: p.Scope})
	}
	return rows
}

func keyOf(c *grouping.Count, p grouping.ScopedHash) hashKey {
	return hashKey{c.Organization, c.Project, p.Version, p.Hash}
}

// findHashes returns the groups of the known hashes.
func findHashes(ctx context.Context, tx pgx.Tx, rows []hashRow) (map[hashKey]string, error) {
	if len(rows) == 0 {
		return map[hashKey]string{}, nil
	}
	c := columnsOf(rows)
	found, err := tx.Query(ctx, `
		SELECT h.organization, h.project, h.version, h.hash, h.error_group
		  FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bytea[]) AS k (organization, project, version, hash)
		  JOIN group_hashes h USING (organization, project, version, hash)`,
		c.organizations, c.projects, c.versions, c.hashes)
	if err != nil {
		return nil, err
	}
	return collectHashes(found)
}

// claimHashes inserts hashes in the order given, and
// returns those inserted. It waits for transactions that
// insert the same ones: the next statement sees theirs.
func claimHashes(ctx context.Context, tx pgx.Tx, rows []hashRow) (map[hashKey]string, error) {
	return insertHashes(ctx, tx, rows, `true`)
}

// claimRoom is claimHashes for groups with room for further hashes like
// these, counted by an index. Concurrent transactions may each use it.
func claimRoom(ctx context.Context, tx pgx.Tx, like string, rows []hashRow) (map[hashKey]string, error) {
	return insertHashes(ctx, tx, rows, fmt.Sprintf(`%d > (SELECT count(*) FROM (SELECT FROM group_hashes h
			WHERE (h.organization, h.error_group) = (k.organization, k.error_group) AND %[2]s LIMIT %[1]d) held)`, maxHashes, like))
}

func insertHashes(ctx context.Context, tx pgx.Tx, rows []hashRow, where string) (map[hashKey]string, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	c := columnsOf(rows)
	claimed, err := tx.Query(ctx, `
		INSERT INTO group_hashes (organization, project, version, hash, level, error_group)
		SELECT organization, project, version, hash, level, error_group
		  FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bytea[], $5::text[], $6::text[])
		       WITH ORDINALITY AS k (organization, project, version, hash, level, error_group, n)
		 WHERE `+where+`
		 ORDER BY n
		ON CONFLICT DO NOTHING
		RETURNING organization, project, version, hash, error_group`,
		c.organizations, c.projects, c.versions, c.hashes, c.scopes, c.groups)
	if err != nil {
		return nil, fmt.Errorf("cannot claim %d hashes: %w", len(rows), err)
	}
	return collectHashes(claimed)
}

func collectHashes(rows pgx.Rows) (map[hashKey]string, error) {
	groups := map[hashKey]string{}
	var k hashKey
	var hash []byte
	var group string
	_, err := pgx.ForEachRow(rows, []any{&k.organization, &k.project, &k.version, &hash, &group}, func() error {
		k.hash = grouping.Hash(hash)
		groups[k] = group
		return nil
	})
	return groups, err
}
