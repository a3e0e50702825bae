package clickhouse

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/weirlog/weir/ingest"
)

// A question is what a search or a count asks of ClickHouse, within its share of time.
type question struct {
	ctx          context.Context //nolint:containedctx // of the question, with which it ends
	store        *Store
	organization string
	search       *ingest.Search
	scope        string // conditions
	ends         time.Time
	most         int64 // bytes to read
	progress     bool  // it has read something, and could end here
}

// searchSlack is how long a question may exceed its share to make any progress.
const searchSlack = 15 * time.Second

// A Part is what another store has had of a question's share.
type Part struct {
	Read  int64 // bytes
	Since time.Time
}

func (s *Store) ask(ctx context.Context, organization string, search *ingest.Search, moved ingest.Moved, used Part) *question {
	return &question{
		ctx: ctx, store: s, organization: organization, search: search, scope: scope(organization, search, moved),
		ends: used.Since.Add(s.limits.Time), most: max(1, int64(s.limits.Bytes)-used.Read),
	}
}

// spent reports whether the share of time is used up.
func (q *question) spent() bool { return q.progress && !q.store.clock().Before(q.ends) }

// send sends a query that may take a part of the time that is left, and some where nothing
// was read yet.
func (q *question) send(query string, part float64, with settings) (*answer, error) {
	left := time.Duration(float64(q.ends.Sub(q.store.clock())) * part)
	if !q.progress {
		left = max(left, time.Second)
	}
	with = q.store.reader.consistent(with)
	with["max_execution_time"] = seconds(max(left, 50*time.Millisecond))
	return q.store.reader.run(q.ctx, q.organization, query, with, nil)
}

// isTooMuch reports whether a server has stopped a query because of its bounds.
func isTooMuch(err error) bool {
	return hasCode(err, codeTimeout, codeTooManyBytes, codeTooManyRows, codeTooMuchMemory)
}

// windows divide the times of a search, which is worked on window by window
// in its order: each is read whole or not at all, so a page can end between two.
type windows struct {
	oldestFirst bool
	from, to    int64 // seconds of what is left; to itself is in it
	size        int64 // of the next window; 0: all that is left
}

// windows begin and end with the entries that there are.
func (q *question) windows(size int64) (*windows, error) {
	bound := func(order, none string) string {
		return `ifNull((SELECT seconds FROM entries ` + where(q.scope, behind(q.search, q.search.Start.After)) + `
			ORDER BY seconds ` + order + ` LIMIT 1), ` + none + `)`
	}
	rows, err := q.store.reader.numbers(q.ctx, q.organization, `SELECT `+bound("ASC", "0")+`, `+bound("DESC", "-1"), q.store.reader.consistent(nil))
	if err != nil {
		return nil, err
	}
	return &windows{oldestFirst: q.search.OldestFirst, from: rows[0][0], to: rows[0][1], size: size}, nil
}

// ended reports whether nothing is left.
func (w *windows) ended() bool { return w.from > w.to }

// next returns the bounds of the next window, both in it.
func (w *windows) next() (from, to int64) {
	switch {
	case w.size == 0 || w.to-w.from < w.size:
		return w.from, w.to
	case w.oldestFirst:
		return w.from, w.from + w.size - 1
	}
	return w.to - w.size + 1, w.to
}

// condition is that of the next window.
func (w *windows) condition() string {
	from, to := w.next()
	return fmt.Sprintf("seconds BETWEEN %d AND %d", from, to)
}

// done goes on behind the next window. The one after it is larger by a factor.
func (w *windows) done(factor float64) {
	from, to := w.next()
	if w.oldestFirst {
		w.from = to + 1
	} else {
		w.to = from - 1
	}
	w.size = max(1, int64(min(float64(w.size)*factor, math.MaxInt64/4)))
}

// narrow makes the next window smaller; false: it is a second already.
func (w *windows) narrow() bool {
	from, to := w.next()
	if from == to {
		return false
	}
	w.size = max(1, min((to-from+1)/8, firstWindow))
	return true
}

// firstWindow is how much is tried where all at once takes too long.
const firstWindow = 3600

// begin is the place just before all that is left.
func (w *windows) begin(search *ingest.Search) ingest.Place {
	if w.oldestFirst {
		return search.Frontier(ingest.Instant{Seconds: w.from})
	}
	return search.Frontier(ingest.Instant{Seconds: w.to, Nanos: 999_999_999})
}
