package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/grouping/trace"
)

// A Build says by which maps calls of an error are found.
type Build struct {
	Release  string            `json:"release,omitempty"`
	DebugIDs map[string]string `json:"debug_ids,omitempty"` // by sourcemap.ScriptName; bounded by the reader of entries
}

// call is one of a script, as it is looked up.
type call struct {
	Project
	release, script, debugID string
	line, column             int
}

func callOf(p Project, b Build, at trace.Place) call {
	script := sourcemap.ScriptName(at.File)
	return call{p, b.Release, script, b.DebugIDs[script], at.Line, at.Column}
}

// lookup is what a map has of a call.
type lookup struct {
	from    time.Time
	until   *time.Time // nil: it holds still
	byDebug bool
	written trace.Written
}

// A Mapper finds where calls of many errors were written, at once.
type Mapper struct {
	asked    []call
	found    map[call][]lookup // bounded by the calls that are asked for
	earliest time.Time         // of the errors
	latest   time.Time
	idle     []Project // organizations and maps that were not used on the day of the errors
}

// NewMapper returns a mapper that was asked for nothing.
func NewMapper() *Mapper { return &Mapper{found: map[call][]lookup{}} }

// Ask asks for the calls of an error that was accepted at a time.
func (m *Mapper) Ask(p Project, b Build, accepted time.Time, places []trace.Place) {
	if m.earliest.IsZero() || accepted.Before(m.earliest) {
		m.earliest = accepted
	}
	if accepted.After(m.latest) {
		m.latest = accepted
	}
	for _, at := range places {
		c := callOf(p, b, at)
		if _, again := m.found[c]; !again && c.column > 0 && (c.release != "" || c.debugID != "") {
			m.found[c] = nil
			m.asked = append(m.asked, c)
		}
	}
}

// Mapping is where calls of an error were written,
// by the maps that held when it was accepted.
func (m *Mapper) Mapping(p Project, b Build, accepted time.Time, places []trace.Place) trace.Mapping {
	mapping := trace.Mapping{} // bounded by trace.MaxPlaces
	for _, at := range places {
		c := callOf(p, b, at)
		switch {
		case c.column == 0:
			mapping[at] = trace.Written{Unmapped: trace.NoColumn}
		case c.release == "" && c.debugID == "":
			mapping[at] = trace.Written{Unmapped: trace.NoBuild}
		default:
			mapping[at] = written(m.found[c], accepted)
		}
	}
	return mapping
}

// written chooses among maps: a debug id names one, a release may
// have been built again.
func written(found []lookup, accepted time.Time) trace.Written {
	best := lookup{written: trace.Written{Unmapped: trace.NoMap}}
	for _, l := range found {
		holds := !l.from.After(accepted) && (l.until == nil || l.until.After(accepted))
		if holds && (best.from.IsZero() || l.byDebug && !best.byDebug || l.byDebug == best.byDebug && l.from.After(best.from)) {
			best = l
		}
	}
	return best.written
}

// callsAtOnce is how many calls one statement looks up.
const callsAtOnce = 5000

// findWritten finds the part of each map that has a call. Each part comes
// with the first of its calls, and those of one part after another.
const findWritten = `
SELECT k.n, m.organization, m.id, m.valid_from, m.valid_until, m.by_debug, m.used < $10::date, c.line, c.col,
       CASE WHEN row_number() OVER (PARTITION BY m.organization, m.id, c.line, c.col ORDER BY k.n, m.by_debug) = 1 THEN c.data END
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::integer[], $7::integer[])
       WITH ORDINALITY AS k (organization, project, release, script, debug_id, line, col, n),
       LATERAL (SELECT *, true AS by_debug FROM source_maps m WHERE k.debug_id <> ''
           AND (m.organization, m.project, m.debug_id) = (k.organization, k.project, k.debug_id)
         UNION ALL SELECT *, false FROM source_maps m WHERE k.release <> ''
           AND (m.organization, m.project, m.release, m.name) = (k.organization, k.project, k.release, k.script)) m
  LEFT JOIN LATERAL (SELECT line, col, data FROM source_map_parts p WHERE p.organization = m.organization AND p.map = m.id
       AND (p.line, p.col) <= (k.line, k.col) ORDER BY p.line DESC, p.col DESC LIMIT 1) c ON true
 WHERE m.valid_from <= $8 AND (m.valid_until IS NULL OR m.valid_until > $9)
 ORDER BY m.organization, m.id, c.line, c.col, k.n, m.by_debug`

// Find looks up what was asked for. It reads one part of a map after another.
func (m *Mapper) Find(ctx context.Context, tx pgx.Tx) error {
	for calls := range slices.Chunk(m.asked, callsAtOnce) {
		if err := m.find(ctx, tx, calls); err != nil {
			return fmt.Errorf("cannot look up %d calls in source maps: %w", len(calls), err)
		}
	}
	m.asked = nil
	return nil
}

// Use marks what was found as used on the day of the errors.
func (m *Mapper) Use(ctx context.Context, tx pgx.Tx) error {
	if len(m.idle) == 0 {
		return nil
	}
	organizations, maps := projectColumns(distinct(m.idle))
	m.idle = nil
	_, err := tx.Exec(ctx, `UPDATE source_maps SET used = $3 WHERE ctid = ANY (ARRAY(
		SELECT m.ctid FROM unnest($1::text[], $2::text[]) AS k (organization, id) JOIN source_maps m USING (organization, id)
		 WHERE m.used < $3 FOR UPDATE OF m SKIP LOCKED))`, organizations, maps, m.latest.UTC())
	return err
}

// run is calls of one part.
type run struct {
	organization, id string
	line, column     *int32 // of the part; nil: there is none
	data             []byte
	calls            []call
	lookups          []lookup
}

func (m *Mapper) find(ctx context.Context, tx pgx.Tx, calls []call) error {
	var organizations, projects, releases, scripts, debugIDs []string
	var lines, columns []int32
	for _, c := range calls {
		organizations, projects = append(organizations, c.Organization), append(projects, c.Name)
		releases, scripts, debugIDs = append(releases, storable(c.release)), append(scripts, storable(c.script)), append(debugIDs, c.debugID)
		at := sourcemap.Place{Line: c.line, Column: c.column}.FromZero()
		lines, columns = append(lines, at[0]), append(columns, at[1])
	}
	rows, err := tx.Query(ctx, findWritten, organizations, projects, releases, scripts, debugIDs, lines, columns, m.latest, m.earliest, m.latest.UTC())
	if err != nil {
		return err
	}
	var r, next run
	var n int
	var l lookup
	var unused bool
	fields := []any{&n, &next.organization, &next.id, &l.from, &l.until, &l.byDebug, &unused, &next.line, &next.column, &next.data}
	_, err = pgx.ForEachRow(rows, fields, func() error {
		if unused {
			m.idle = append(m.idle, Project{next.organization, next.id})
		}
		if next.data != nil || next.line == nil {
			if err := m.resolve(r); err != nil {
				return err
			}
			r = next
			r.calls, r.lookups = nil, nil
		}
		r.calls, r.lookups = append(r.calls, calls[n-1]), append(r.lookups, l)
		return nil
	})
	if err == nil {
		err = m.resolve(r)
	}
	return err
}

// resolve finds the calls of one part.
func (m *Mapper) resolve(r run) error {
	order := make([]int, len(r.calls)) // by place
	for i := range order {
		order[i] = i
	}
	place := func(i int) sourcemap.Place { return sourcemap.Place{Line: r.calls[i].line, Column: r.calls[i].column} }
	slices.SortFunc(order, func(a, b int) int { return place(a).Compare(place(b)) })
	places := make([]sourcemap.Place, len(order))
	for k, i := range order {
		places[k] = place(i)
	}
	originals := make([]sourcemap.Original, len(order))
	if r.line != nil {
		var err error
		if originals, err = sourcemap.Find(r.data, *r.line, places); err != nil {
			return err
		}
	}
	for k, i := range order {
		l, o := r.lookups[i], originals[k]
		l.written = trace.Written{File: o.Source, Line: o.Line, Column: o.Column, Callee: o.Name}
		if o.Source == "" {
			l.written = trace.Written{Unmapped: trace.NoPosition}
		}
		m.found[r.calls[i]] = append(m.found[r.calls[i]], l)
	}
	return nil
}
