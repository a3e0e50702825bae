package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/trace"
	"github.com/weirlog/weir/shared/pg"
)

// Bounds of a search.
const (
	scanBatch    = 2000    // groups that are scanned before the first check of the time
	scanGrowth   = 4       // how many times more before the next one
	maxScan      = 32_000  // at most
	maxPageBytes = 1 << 20 // of the texts of a page's groups: as JSON they are at most six times as long
)

// GroupQuery selects groups. Zero members do not filter.
type GroupQuery struct {
	Project      string   // empty: of the whole organization
	Hidden       []string `json:"-"` // projects that are left out
	Status       grouping.Status
	From, To     time.Time // groups seen in [From, To)
	Severities   grouping.Severity
	Environments []string
	Words        []string // all of them occur in title, type or culprit, whatever their case
	Type         string   // its type contains this, whatever the case
	Release      string   // one of its errors, as far as groups keep them: the first, and those that came last
	Assignee     string
	Unassigned   bool // only those that nobody looks after
	Unlike       Unlike
	NewSince     bool // only those that are new since the last deploy of their project, to one of Environments if there are any
	deploys      deploys
	Sort         Sorting
	Now          time.Time `json:"-"` // of ByUsers
	After        GroupCursor
	Limit        int
	TimeUp       func() bool `json:"-"` // called now and then: when true, the page ends with what was found; nil: never
}

// Unlike leaves out groups that have both already; zero: none.
type Unlike struct {
	Status   grouping.Status
	Assignee *string
}

// GroupCursor is a place in a list of groups.
type GroupCursor struct {
	LastSeen time.Time `json:"l"`
	ID       string    `json:"i"`
	Key      int64     `json:"k,omitempty"` // in another order
}

// Cursor is the group's place in a list.
func (g Group) Cursor() GroupCursor { return GroupCursor{LastSeen: g.LastSeen, ID: g.ID} }

func (c GroupCursor) args() []any { return []any{minute(c.LastSeen), c.LastSeen, c.ID} }

// minute is the precision by which lists are sorted: by exact
// times, each error of a group would rewrite their indexes.
func minute(seen time.Time) time.Time { return seen.UTC().Truncate(time.Minute) }

// Page is the result of a search.
type Page struct {
	Groups     []Group
	Recent     map[string]*Recent // of each group, by its id; bounded by the page
	Next       *GroupCursor       // where the list continues; nil at its end
	Incomplete bool               // TimeUp returned true before the page was full
	bytes      int
}

// IDs are those of the groups.
func (p Page) IDs() []string {
	ids := make([]string, len(p.Groups))
	for i, g := range p.Groups {
		ids[i] = g.ID
	}
	return ids
}

// Groups lists groups, the newest first: at most Limit, or what fits
// into a page. tx must act as the organization. With a filter the list
// is searched in ranges, so that a search without results ends too.
func Groups(ctx context.Context, tx pgx.Tx, organization pg.Organization, q GroupQuery) (page Page, err error) {
	if err := q.findDeploys(ctx, tx, organization); err != nil {
		return page, err
	}
	if q.Sort != "" {
		return sorted(ctx, tx, organization, q, q.Now)
	}
	for after, stretch := q.After, scanBatch; ; stretch = min(stretch*scanGrowth, maxScan) {
		border, err := q.rangeEnd(ctx, tx, organization, after, stretch)
		if err != nil {
			return page, fmt.Errorf("cannot look at the list of groups: %w", err)
		}
		if err := page.fill(ctx, tx, organization, q, after, border); err != nil || page.Next != nil || border == (GroupCursor{}) {
			return page, err
		}
		if after = border; q.TimeUp != nil && q.TimeUp() {
			page.Next, page.Incomplete = &border, len(page.Groups) < q.Limit
			return page, nil
		}
	}
}

// Found are the ids of the groups of a search.
type Found struct {
	IDs        []string
	More       int64 // groups that match beyond those
	Incomplete bool  // TimeUp returned true before all were looked at
}

// FindIDs returns at most limit ids of the groups of a search, the newest
// first, and counts the others. tx must act as the organization.
func FindIDs(ctx context.Context, tx pgx.Tx, organization pg.Organization, q GroupQuery, limit int) (found Found, err error) {
	if err := q.findDeploys(ctx, tx, organization); err != nil {
		return found, err
	}
	for after, stretch := q.After, scanBatch; ; stretch = min(stretch*scanGrowth, maxScan) {
		border, err := q.rangeEnd(ctx, tx, organization, after, stretch)
		if err != nil {
			return found, fmt.Errorf("cannot look at the list of groups: %w", err)
		}
		s := q.inRange(organization, after, border)
		rows, err := tx.Query(ctx, fmt.Sprintf(`SELECT id FROM error_groups WHERE %s ORDER BY %s`, s.where(), newestFirst), s.args...)
		if err != nil {
			return found, err
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			return found, err
		}
		taken := min(len(ids), limit-len(found.IDs))
		found.IDs, found.More = append(found.IDs, ids[:taken]...), found.More+int64(len(ids)-taken)
		if border == (GroupCursor{}) {
			return found, nil
		}
		if after = border; q.TimeUp != nil && q.TimeUp() {
			found.Incomplete = true
			return found, nil
		}
	}
}

// filtered reports whether groups may have to be skipped.
func (q *GroupQuery) filtered() bool {
	return q.Status != "" || q.Assignee != "" || q.Unassigned || q.Unlike != Unlike{} || q.NewSince || !q.To.IsZero() || q.Severities != 0 ||
		len(q.Environments) > 0 || len(q.Words) > 0 || q.Type != "" || q.Release != ""
}

// list selects the groups that the search scans, those behind after.
func (q *GroupQuery) list(organization pg.Organization, after GroupCursor) (s selection) {
	s.add(true, "merged_into = '' AND organization = ?", organization)
	s.add(q.Project != "", "project = ?", q.Project)
	s.add(len(q.Hidden) > 0, "project <> ALL(?::text[])", q.Hidden)
	s.add(!q.From.IsZero(), "last_seen >= ?", q.From)
	s.add(!q.From.IsZero(), "seen_minute >= ?", minute(q.From)) // for the index
	s.add(after != GroupCursor{}, "(seen_minute, last_seen, id) < (?, ?, ?)", after.args()...)
	return s
}

// rangeEnd is the end of the next range: that of a minute, so that indexes alone
// tell it; zero: the end of the list.
func (q *GroupQuery) rangeEnd(ctx context.Context, tx pgx.Tx, organization pg.Organization, after GroupCursor, stretch int) (border GroupCursor, err error) {
	if !q.filtered() {
		return GroupCursor{}, nil
	}
	border.LastSeen, err = q.minuteOf(ctx, tx, organization, after, stretch)
	return border, err
}

// minuteOf is when the nth group of the list behind a place was last seen, those of
// hidden projects included; zero: there is none.
func (q *GroupQuery) minuteOf(ctx context.Context, tx pgx.Tx, organization pg.Organization, after GroupCursor, n int) (at time.Time, err error) {
	var s selection
	s.add(true, "merged_into = '' AND organization = ?", organization)
	s.add(q.Project != "", "project = ?", q.Project)
	s.add(!q.From.IsZero(), "seen_minute >= ?", minute(q.From))
	s.add(after != GroupCursor{} && after.ID != "", "seen_minute <= ?", minute(after.LastSeen))
	s.add(after != GroupCursor{} && after.ID == "", "seen_minute < ?", minute(after.LastSeen)) // it ended a range, with its minute
	query := fmt.Sprintf(`SELECT seen_minute FROM error_groups WHERE %s ORDER BY seen_minute DESC OFFSET %d LIMIT 1`, s.where(), n-1)
	err = tx.QueryRow(ctx, query, s.args...).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		return time.Time{}, nil
	}
	return at, err
}

const (
	groupColumns = `id, project, title, type, culprit, status, count, first_seen, last_seen, levels, environments, first_release, last_release, version,
		merged_into, members, coalesce(decided, '{"status":"unresolved"}')`
	newestFirst = `seen_minute DESC, last_seen DESC, id DESC`
)

// rangeQuery is the query for at most limit groups of a range.
func (q *GroupQuery) rangeQuery(organization pg.Organization, after, border GroupCursor, limit int) (query string, args []any) {
	s := q.inRange(organization, after, border)
	return fmt.Sprintf(`SELECT %s FROM error_groups WHERE %s ORDER BY %s LIMIT %d`, groupColumns, s.where(), newestFirst, limit), s.args
}

// inRange selects the groups of a range.
func (q *GroupQuery) inRange(organization pg.Organization, after, border GroupCursor) selection {
	s := q.list(organization, after)
	s.add(border != GroupCursor{}, "(seen_minute, last_seen, id) >= (?, ?, ?)", border.args()...)
	s.add(q.Status != "", "status = ?", string(q.Status))
	s.add(q.Assignee != "", "assignee = ?", q.Assignee)
	s.add(q.Unassigned, "assignee = ''")
	s.add(q.Type != "", "CASE WHEN lower(type) LIKE ALL (?::text[]) THEN true END", likeWords([]string{strings.ToLower(q.Type)})) // CASE: see Words
	s.add(q.Release != "", "(releases @> ARRAY[?::text] OR first_release = ? OR last_release = ?)", q.Release, q.Release, q.Release)
	s.add(q.Unlike.Status != "" && q.Unlike.Assignee == nil, "status <> ?", string(q.Unlike.Status))
	s.add(q.Unlike.Status == "" && q.Unlike.Assignee != nil, "assignee <> ?", q.Unlike.Assignee)
	s.add(q.Unlike.Status != "" && q.Unlike.Assignee != nil, "(status <> ? OR assignee <> ?)", string(q.Unlike.Status), q.Unlike.Assignee)
	s.add(!q.To.IsZero(), "first_seen < ?", q.To)
	s.add(q.Severities != 0, "levels & ?::smallint <> 0", int16(q.Severities))
	s.add(len(q.Environments) > 0, "environments && ?::text[]", q.Environments)
	s.add(q.NewSince, "EXISTS (SELECT FROM unnest(?::text[], ?::text[], ?::timestamptz[]) AS d (of, release, since) "+
		"WHERE d.of = project AND (first_release = d.release OR first_seen >= d.since))", q.deploys.projects, q.deploys.releases, q.deploys.since)
	s.add(len(q.Words) > 0, // CASE: else the planner expects next to nothing, and does not read in the order of the index
		"CASE WHEN lower(title || ' ' || type || ' ' || culprit) LIKE ALL (ARRAY(SELECT lower(w) FROM unnest(?::text[]) AS w)) THEN true END", likeWords(q.Words))
	return s
}

// likeWords are patterns for texts with the words.
func likeWords(words []string) []string {
	patterns, literally := make([]string, len(words)), strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)
	for i, word := range words {
		patterns[i] = "%" + literally.Replace(word) + "%"
	}
	return patterns
}

// fill adds a range's groups until the page is full.
func (p *Page) fill(ctx context.Context, tx pgx.Tx, organization pg.Organization, q GroupQuery, after, border GroupCursor) error {
	query, args := q.rangeQuery(organization, after, border, q.Limit+1-len(p.Groups))
	rows, err := tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var g Group
		if err := rows.Scan(g.fields()...); err != nil {
			return err
		}
		if !p.add(g, q.Limit) {
			return nil
		}
	}
	return rows.Err()
}

// add adds g unless the page is full; the next
// page then starts after the last one here.
func (p *Page) add(g Group, limit int) bool {
	size := len(g.Title) + len(g.Type) + len(g.Culprit)
	for _, name := range g.Environments {
		size += len(name)
	}
	if n := len(p.Groups); n == limit || n > 0 && p.bytes+size > maxPageBytes {
		next := p.Groups[n-1].Cursor()
		p.Next = &next
		return false
	}
	p.Groups, p.bytes = append(p.Groups, g), p.bytes+size
	return true
}

// selection collects the conditions of a query and their arguments.
type selection struct {
	conditions []string
	args       []any
}

// add adds a wanted condition. Each "?" is an argument.
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

func (s *selection) where() string { return strings.Join(s.conditions, " AND ") }

// Bounds of a search for similar groups.
const (
	maxSameHash = 1000 // groups that share the loosest hash
	maxNewest   = 2000 // groups of the project that were last seen: their calls are read
	maxCompared = 50   // groups whose traces are compared
)

// Candidate is a group that may be similar,
// and the outline of its first sample.
type Candidate struct {
	Group
	Outline grouping.Outline
}

// Candidates are a group and maybe similar ones of its project.
type Candidates struct {
	Of     Candidate
	Others []Candidate
	Rarity *grouping.Rarity // of their calls in the project
}

// Similar returns a group and those that share its loosest hash or
// whose calls are most like its own. tx must act as the organization.
func Similar(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (found Candidates, err error) {
	if found.Of.Group, _, err = FindGroup(ctx, tx, organization, id); err != nil {
		return Candidates{}, err
	}
	id = found.Of.ID // the head's, perhaps
	of, others, err := traced(ctx, tx, organization, id)
	if err != nil {
		return Candidates{}, err
	}
	found.Rarity = rarityAmong(others)
	all, err := candidates(ctx, tx, organization, append(nearest(of, others, found.Rarity), id))
	for _, c := range all {
		if c.ID == id {
			found.Of = c
			continue
		}
		found.Others = append(found.Others, c)
	}
	return found, err
}

// tracedGroup is a group and the numbers of its calls.
type tracedGroup struct {
	id         string
	calls      []int32
	hashed     bool // it shares the loosest hash
	similarity float64
}

// traced returns a group, and those that may be like it.
func traced(ctx context.Context, tx pgx.Tx, organization pg.Organization, id string) (of tracedGroup, others []tracedGroup, err error) {
	rows, err := tx.Query(ctx, `
		WITH one AS (SELECT organization, project, similar_hash, id, calls FROM error_groups WHERE organization = $1 AND id = $2
		), hashed AS (SELECT s.id, s.calls FROM one JOIN error_groups s USING (organization, project, similar_hash) WHERE s.id <> $2 AND s.merged_into = '' LIMIT $3
		), newest AS (SELECT s.* FROM one, LATERAL (SELECT id, calls FROM error_groups
			WHERE organization = $1 AND project = one.project AND merged_into = '' ORDER BY seen_minute DESC LIMIT $4) s)
		SELECT id, calls, true FROM one UNION ALL SELECT id, calls, true FROM hashed
		UNION ALL SELECT id, calls, false FROM newest WHERE id <> $2 AND id NOT IN (SELECT id FROM hashed)`,
		organization, id, maxSameHash, maxNewest)
	if err != nil {
		return tracedGroup{}, nil, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g tracedGroup, err error) {
		return g, row.Scan(&g.id, &g.calls, &g.hashed)
	})
	n := slices.IndexFunc(all, func(g tracedGroup) bool { return g.id == id })
	if err != nil || n < 0 {
		return tracedGroup{}, nil, err
	}
	of = all[n]
	return of, slices.Delete(all, n, n+1), nil
}

func rarityAmong(groups []tracedGroup) *grouping.Rarity {
	calls := make([][]int32, len(groups))
	for i, g := range groups {
		calls[i] = g.calls
	}
	return grouping.RarityAmong(calls)
}

// nearest are the groups whose traces are worth comparing: first
// those with the same hash, then those whose calls align best.
func nearest(of tracedGroup, others []tracedGroup, rarity *grouping.Rarity) (ids []string) {
	query := rarity.Query(of.calls)
	for i := range others {
		if others[i].similarity = query.Alignment(others[i].calls); others[i].hashed {
			others[i].similarity++
		}
	}
	others = slices.DeleteFunc(others, func(g tracedGroup) bool { return g.similarity == 0 })
	slices.SortFunc(others, func(a, b tracedGroup) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(a.id, b.id))
	})
	for _, g := range others[:min(len(others), maxCompared)] {
		ids = append(ids, g.id)
	}
	return ids
}

func candidates(ctx context.Context, tx pgx.Tx, organization pg.Organization, ids []string) ([]Candidate, error) {
	rows, err := tx.Query(ctx, `
		SELECT `+groupColumns+`, why->>'language',
		       coalesce((SELECT exceptions FROM occurrences o WHERE o.organization = $1 AND o.error_group = id ORDER BY o.slot LIMIT 1), '[]')
		  FROM error_groups WHERE organization = $1 AND id = ANY ($2)`, organization, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (c Candidate, err error) {
		var language trace.Language
		var exceptions []Exception
		err = row.Scan(append(c.fields(), &language, &exceptions)...)
		c.Outline = grouping.OutlineOf(language, parsed(exceptions))
		return c, err
	})
}

// parsed are the exceptions as they were before they were stored.
func parsed(stored []Exception) (exceptions []trace.Exception) {
	for _, x := range stored {
		e := trace.Exception{Type: x.Type, Message: x.Message}
		for _, f := range x.Frames {
			e.Frames = append(e.Frames, trace.Frame{Module: f.Module, Function: f.Function, File: f.File, Line: f.Line, Column: f.Column, InApp: f.InApp,
				Library: f.Library, Printed: f.Printed})
		}
		exceptions = append(exceptions, e)
	}
	return exceptions
}
