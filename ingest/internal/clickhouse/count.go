package clickhouse

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/ingest"
)

// Count counts an organization's entries in the moves that count, newest first.
// Without texts the database counts; else they are counted here.
func (s *Store) Count(ctx context.Context, organization string, count ingest.Count, moved ingest.Moved, used Part) (
	*ingest.Counter, error,
) {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Time+searchSlack)
	defer cancel()
	c := counting{question: s.ask(ctx, organization, &count.Search, moved, used), count: &count, sum: count.NewCounter()}
	if count.MaxBytes > 0 {
		c.most = min(c.most, max(1, int64(count.MaxBytes)-used.Read))
	}
	count.Search.Start, count.Search.OldestFirst = ingest.Position{}, false
	if err := c.run(); err != nil {
		return nil, fmt.Errorf("cannot count in ClickHouse: %w", err)
	}
	return c.sum, nil
}

// counting is one count at work.
type counting struct {
	*question
	count  *ingest.Count
	sum    *ingest.Counter
	read   int64
	values []value // of the fields that the database groups by
}

// windowBytes is about how much text of a window is counted at once.
const windowBytes = 32 << 20

func (c *counting) run() error {
	values, certain := valuesOf(c.count.By)
	read, size := c.entries, int64(60)
	if c.count.Groups() && certain {
		c.values, read, size = values, c.groups, firstWindow
		whole, err := c.groups(nil)
		if !isTooMuch(err) && (err != nil || whole) {
			return err
		}
	}
	left, err := c.windows(size)
	if err != nil {
		return err
	}
	for !left.ended() {
		before := c.read
		whole, err := read(left)
		switch {
		case isTooMuch(err):
			if !left.narrow() && c.ctx.Err() != nil {
				return err
			}
		case err != nil:
			return err
		case whole:
			left.done(min(max(windowBytes/float64(1+c.read-before), 0.125), 16))
			c.progress = true
		}
		if !left.ended() && (!whole && err == nil || c.spent() || c.progress && c.read >= c.most) {
			c.sum.Spend(&ingest.Instant{Seconds: left.to, Nanos: 999_999_999}, 0)
			return nil
		}
	}
	return nil
}

func condition(left *windows) string {
	if left == nil {
		return ""
	}
	return left.condition()
}

// maxGroups bounds the memory that a count takes in the database.
const maxGroups = "1000000"

// groups has the database count what is alike. It is whole, or fails.
func (c *counting) groups(left *windows) (whole bool, err error) {
	project, bucket, columns, by := `''`, `toInt64(0)`, "", ""
	if slices.ContainsFunc(c.count.By, func(f ingest.Field) bool { return f.String() == ingest.FieldProject }) {
		project = `project`
	}
	if every := int64(c.count.Every / time.Second); every > 0 {
		bucket = fmt.Sprintf(`intDiv(seconds - %d, %d)`, c.count.FirstBucket(), every)
	}
	for i, v := range c.values {
		columns += fmt.Sprintf(", %s AS value_%d", v.sql, i)
		by += fmt.Sprintf(", value_%d", i)
	}
	query := `SELECT ` + project + ` AS of, level, environment, min(seconds), toInt64(count())` + columns + ` FROM entries ` +
		where(c.scope, condition(left), c.search.Query.Sift(sieve{})) + ` GROUP BY of, level, environment, ` + bucket + by + ` FORMAT RowBinary`
	// To evaluate what is not needed takes a third of what it takes to leave it out.
	with := settings{"max_rows_to_group_by": maxGroups, "group_by_overflow_mode": "throw", "short_circuit_function_evaluation": "disable"}
	if left == nil && len(c.values) > 0 {
		with["max_bytes_to_read"] = strconv.FormatInt(c.most, 10)
	}
	answer, err := c.send(query, 0.5, with)
	if err != nil {
		return false, err
	}
	defer answer.Close()
	sum := c.count.NewCounter()
	if err := c.add(sum, newRowReader(answer)); err != nil {
		return false, err
	}
	c.sum.Merge(sum)
	c.sum.Spend(nil, answer.read)
	if len(c.values) > 0 {
		c.read += answer.read
	}
	return true, nil
}

// add counts groups.
func (c *counting) add(sum *ingest.Counter, rows *rowReader) error {
	for rows.more() {
		of, alike := rows.name(0), ingest.Stored{Level: ingest.Severity(rows.uint(1)), Environment: rows.name(1)} //nolint:gosec // one byte
		alike.Time.Seconds = rows.int64()
		if from := c.search.From; from != nil && alike.Time.Compare(*from) < 0 {
			alike.Time = *from // in the same second
		}
		entries := rows.int64()
		alike.Text = rows.textOf(c.values)
		if rows.err == nil {
			sum.AddAlike(&alike, of, entries)
		}
	}
	return rows.err
}

// textOf reads what was found of fields, and returns a text that has the same there.
func (r *rowReader) textOf(values []value) []byte {
	var whole []byte
	made := []byte{'{'}
	for _, v := range values {
		switch found := r.text(); {
		case len(found) == 0:
		case found[0] == unclear:
			whole = found[1:]
		default:
			made = v.text(made, string(found))
		}
	}
	if whole != nil {
		return whole
	}
	return append(made, '}')
}

// A portion is some entries of one project.
type portion struct {
	project string
	entries []ingest.Stored
}

// portionSize is how many entries are counted together.
const portionSize = 256

// entries counts those of a window here, on several processors. False: the
// share was used up, and it has counted some.
func (c *counting) entries(left *windows) (whole bool, err error) {
	query := `SELECT ` + entryColumns + ` FROM entries ` + where(c.scope, left.condition(), c.search.Query.Sift(sieve{})) + ` FORMAT RowBinary`
	answer, err := c.send(query, 1, nil)
	if err != nil {
		return false, err
	}
	defer answer.Close()
	var workers errgroup.Group
	portions, counters := make(chan portion), make([]*ingest.Counter, max(1, min(runtime.GOMAXPROCS(0), ingest.MaxCounters-2)))
	for i := range counters {
		counters[i] = c.count.NewCounter()
		workers.Go(func() error {
			for p := range portions {
				counters[i].Add(p.entries, p.project)
			}
			return nil
		})
	}
	rows := newRowReader(answer)
	whole = c.divide(rows, portions)
	close(portions)
	_ = workers.Wait() // none fails
	if rows.err != nil {
		return false, rows.err
	}
	for _, counter := range counters {
		c.sum.Merge(counter)
	}
	c.read += rows.bytes
	c.sum.Spend(nil, cmp.Or(answer.read, rows.bytes))
	return whole, nil
}

// divide makes portions of rows until the share is used up.
func (c *counting) divide(rows *rowReader, portions chan<- portion) (whole bool) {
	var next portion
	for rows.more() {
		project, entry := rows.entry()
		if len(next.entries) == portionSize || project != next.project && len(next.entries) > 0 {
			if portions <- next; c.read+rows.bytes >= c.most || c.progress && c.spent() {
				return false
			}
			next.entries = nil
		}
		next.project = project
		next.entries = append(next.entries, entry)
	}
	portions <- next
	return true
}
