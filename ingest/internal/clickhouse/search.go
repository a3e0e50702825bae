package clickhouse

import (
	"bytes"
	"context"
	"fmt"

	"github.com/weirlog/weir/ingest"
)

// Search finds a page of an organization's entries in the moves that count. The
// database narrows down where they can be; the entries' own text decides.
func (s *Store) Search(ctx context.Context, organization string, search ingest.Search, moved ingest.Moved, used Part) (
	ingest.Result, error,
) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Time+searchSlack)
	defer cancel()
	f := finding{question: s.ask(ctx, organization, &search, moved, used), after: search.Start.After}
	if err := f.run(); err != nil {
		return ingest.Result{}, fmt.Errorf("cannot search ClickHouse: %w", err)
	}
	return f.result, nil
}

// finding is one page at work.
type finding struct {
	*question
	after  *ingest.Place // all entries up to it are read
	text   int           // bytes of the page
	result ingest.Result
	ended  bool
}

// How many rows a query asks for: twice as many each time, as most pages are
// full soon.
const (
	minRows = 64
	maxRows = 8192
)

// run reads on until the page is full or its share is used up. All times are
// tried at once, then window by window.
func (f *finding) run() error {
	var left *windows
	for rows := max(minRows, f.search.Limit+1); !f.ended; {
		read, err := f.read(left, rows)
		switch {
		case isTooMuch(err) && left == nil:
			if left, err = f.windows(firstWindow); err != nil {
				return err
			}
			f.ended = left.ended()
		case isTooMuch(err):
			if !left.narrow() && f.ctx.Err() != nil {
				return err
			}
		case err != nil:
			return err
		case f.ended:
		case read < rows && left == nil:
			return nil
		case read < rows:
			if left.done(4); left.ended() {
				return nil
			}
			begin := left.begin(f.search)
			f.after, f.progress, rows = &begin, true, max(minRows, f.search.Limit+1)
		default:
			rows = min(2*rows, maxRows)
		}
		if !f.ended && f.spent() {
			f.stop(true)
		}
	}
	return nil
}

// read reads at most so many rows of the next window.
func (f *finding) read(left *windows, most int) (read int, err error) {
	window, part, order := "", 0.5, "DESC"
	if left != nil {
		window, part = left.condition(), 1
	}
	if f.search.OldestFirst {
		order = "ASC"
	}
	query := fmt.Sprintf(`SELECT `+entryColumns+` FROM entries %s ORDER BY seconds %[2]s, nanos %[2]s, batch %[2]s, number %[2]s LIMIT %[3]d FORMAT RowBinary`,
		where(f.scope, window, behind(f.search, f.after), f.search.Query.Sift(sieve{})), order, most)
	answer, err := f.send(query, part, nil)
	if err != nil {
		return 0, err
	}
	defer answer.Close()
	rows := newRowReader(answer)
	for ; !f.ended && rows.more(); read++ {
		project, entry := rows.entry()
		if rows.err != nil {
			break
		}
		f.take(project, entry)
	}
	return read, rows.err
}

// take looks at the next entry in order.
func (f *finding) take(project string, entry ingest.Stored) {
	matches := f.search.Matches(&entry)
	if size := f.text + len(entry.Text); matches && len(f.result.Found) > 0 && (len(f.result.Found) == f.search.Limit || size > f.search.PageBytes()) {
		f.stop(false)
		return
	}
	f.after, f.progress = &entry.Place, true
	f.result.Read += int64(len(entry.Text))
	if matches {
		f.text += len(entry.Text)
		entry.Text = bytes.Clone(entry.Text) // it shares memory with others that don't match
		f.result.Found = append(f.result.Found, ingest.Found{Stored: entry, Project: project})
	}
	if f.result.Read >= f.most {
		f.stop(true)
	}
}

// stop ends the page behind what was read.
func (f *finding) stop(incomplete bool) {
	f.result.Next, f.result.Incomplete, f.ended = &ingest.Position{After: f.after}, incomplete, true
}
