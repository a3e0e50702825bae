package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
)

// headersAtOnce is how many headers of blocks are fetched in one go.
const headersAtOnce = 64

// narrow is the span that no block exceeds, in seconds, but for those in the indexes of wide blocks.
const narrow = 3600

// byIndexAlone leaves the planner no way but an index, whatever it knows of the tables.
const byIndexAlone = `SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off`

// headers is a cursor of the database over headers of blocks in the order of a search.
type headers struct {
	name    string
	fetched []ingest.Candidate
	ended   bool
}

// openHeaders opens cursors that together give every header that may matter. Where entries of some time and beyond are wanted,
// the narrow blocks begin near that time, and only the wide ones anywhere: then there is a cursor for each.
//
// Whatever a query leaves out, it leaves out by the order of an index: a condition that no
// index knows would pass over any number of headers unseen and uncounted, and a sort would read them all for the first.
func openHeaders(ctx context.Context, tx pgx.Tx, organization pg.Organization, search *ingest.Search) (opened []*headers, err error) {
	for _, q := range headerQueries(string(organization), search) {
		text := byIndexAlone + `; DECLARE ` + q.name + ` NO SCROLL CURSOR FOR ` + q.text.String()
		if _, err := tx.Exec(ctx, text, append([]any{pgx.QueryExecModeSimpleProtocol}, q.args...)...); err != nil {
			return nil, err
		}
		opened = append(opened, &headers{name: q.name})
	}
	return opened, nil
}

// head is the next header; nil at the end.
func (h *headers) head(ctx context.Context, tx pgx.Tx) (*ingest.Candidate, error) {
	if len(h.fetched) == 0 && !h.ended {
		if err := h.fetch(ctx, tx); err != nil {
			return nil, err
		}
	}
	if len(h.fetched) == 0 {
		return nil, nil //nolint:nilnil // there is no further header
	}
	return &h.fetched[0], nil
}

func (h *headers) fetch(ctx context.Context, tx pgx.Tx) error {
	rows, err := tx.Query(ctx, fmt.Sprintf(`FETCH %d FROM %s`, headersAtOnce, h.name))
	if err != nil {
		return err
	}
	h.fetched, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (c ingest.Candidate, err error) {
		var minNanos, maxNanos int32
		var levels int16
		err = row.Scan(&c.ID, &c.Project, &c.ReceivedAt, &c.Min.Seconds, &minNanos, &c.Max.Seconds, &maxNanos, &levels, &c.Bytes, (*[]byte)(&c.Words))
		c.Min.Nanos, c.Max.Nanos, c.Levels = uint32(minNanos), uint32(maxNanos), ingest.SeveritySet(levels) //nolint:gosec // as stored
		return c, err
	})
	h.ended = len(h.fetched) < headersAtOnce
	return err
}

// headerQueries are the queries for all headers that may matter.
func headerQueries(organization string, search *ingest.Search) []*headerQuery {
	near := &headerQuery{name: "headers", search: search}
	near.begin(organization, search.Project)
	reach, bounded := near.reach()
	if !bounded {
		near.end()
		return []*headerQuery{near}
	}
	near.write(` AND max_seconds - min_seconds <= %d AND %s`, narrow, reach)
	near.end()
	wide := &headerQuery{name: "wide_headers", search: search}
	wide.begin(organization, everyProject)
	wide.write(` AND max_seconds - min_seconds > %d`, narrow)
	wide.end()
	return []*headerQuery{near, wide}
}

// everyProject is for a query whose index does not know the project: Find leaves out the others.
const everyProject = ""

type headerQuery struct {
	name   string
	search *ingest.Search
	text   strings.Builder
	args   []any
}

func (q *headerQuery) write(format string, args ...any) { fmt.Fprintf(&q.text, format, args...) }

// arg is a parameter's place in the query.
func (q *headerQuery) arg(value any) string {
	q.args = append(q.args, value)
	return fmt.Sprintf("$%d", len(q.args))
}

// begin selects headers by conditions that an index knows.
func (q *headerQuery) begin(organization, project string) {
	q.write(`SELECT block, project, received_at, min_seconds, min_nanos, max_seconds, max_nanos, levels, text_bytes,
		CASE WHEN %s THEN words ELSE '' END FROM blocks WHERE organization = %s`, q.needsWords(), q.arg(organization))
	if project != everyProject {
		q.write(` AND project = %s`, q.arg(project))
	}
	end, behind := `max`, `<`
	if q.search.OldestFirst {
		end, behind = `min`, `>`
	}
	if seen := q.search.Start.Seen; seen != nil {
		q.write(` AND (%[1]s_seconds, %[1]s_nanos, block) %[2]s (%[3]s, %[4]s, %[5]s::uuid)`,
			end, behind, q.arg(seen.First.Seconds), q.arg(int32(seen.First.Nanos)), q.arg(uuidText(seen.ID))) //nolint:gosec // below 1e9
	}
	if q.search.OldestFirst && q.search.To != nil {
		q.write(` AND min_seconds <= %s`, q.arg(q.search.To.Seconds))
	}
	if !q.search.OldestFirst && q.search.From != nil {
		q.write(` AND max_seconds >= %s`, q.arg(q.search.From.Seconds))
	}
}

// needsWords is where the filter of words may tell something: it is much larger than the rest of a header.
func (q *headerQuery) needsWords() string {
	switch {
	case len(q.search.Words) == 0:
		return `false`
	case q.search.Levels == 0:
		return `true`
	}
	return `levels & ` + q.arg(int16(q.search.Levels)) + ` <> 0`
}

func (q *headerQuery) end() {
	if q.search.OldestFirst {
		q.write(` ORDER BY min_seconds, min_nanos, block`)
	} else {
		q.write(` ORDER BY max_seconds DESC, max_nanos DESC, block DESC`)
	}
}

// reach is the condition that a narrow block reaches to the time from which on entries are wanted; false: from the very first.
func (q *headerQuery) reach() (condition string, bounded bool) {
	after := q.search.Start.After
	if q.search.OldestFirst {
		from := q.search.From
		if after != nil && (from == nil || from.Compare(after.Time) < 0) {
			from = &after.Time
		}
		if from == nil {
			return "", false
		}
		return `min_seconds >= ` + q.arg(from.Seconds-narrow), true
	}
	to := q.search.To
	if after != nil && (to == nil || to.Compare(after.Time) > 0) {
		to = &after.Time
	}
	if to == nil {
		return "", false
	}
	return `max_seconds <= ` + q.arg(to.Seconds+narrow), true
}
