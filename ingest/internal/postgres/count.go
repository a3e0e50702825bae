package postgres

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
)

// fetchBytes is about how much text of blocks is read in one query. It
// bounds the memory of a count, with the two blocks that each processor unpacks.
const fetchBytes = 8 << 20

// Count counts an organization's entries within the store's limits for
// one page, with the top values of each field. Blocks are read newest
// first, and unpacked on several processors.
func (s *Store) Count(ctx context.Context, organization pg.Organization, count ingest.Count, top int) (ingest.Counted, error) {
	counter, _, err := s.CountMoved(ctx, organization, count)
	if err != nil {
		return ingest.Counted{}, err
	}
	return counter.Result(top), nil
}

// CountMoved is Count as a Counter, and what of another store counts beside it.
func (s *Store) CountMoved(ctx context.Context, organization pg.Organization, count ingest.Count) (
	counter *ingest.Counter, moved ingest.Moved, err error,
) {
	err = s.scan(ctx, organization, &count.Search, func(scan *scan) error {
		if count.MaxBytes > 0 {
			scan.most = min(scan.most, count.MaxBytes)
		}
		c := counting{scan: scan, count: &count, headers: count.NewCounter()}
		if err := c.run(); err != nil {
			return err
		}
		c.headers.Spend(c.from, int64(scan.read))
		counter, moved = c.headers, scan.moved
		s.metrics.searched(scan.read, c.from != nil)
		return nil
	})
	return counter, moved, err
}

// counting is one count at work.
type counting struct {
	scan    *scan
	count   *ingest.Count
	headers *ingest.Counter

	mu     sync.Mutex
	from   *ingest.Instant    // as that of ingest.Counted
	unsure []ingest.Candidate // blocks whose columns don't know what is asked
}

// endAt notes that the share was used up at an instant.
func (c *counting) endAt(at ingest.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from == nil || c.from.Compare(at) < 0 {
		c.from = &at
	}
}

// run counts by headers and columns, and then by the texts of blocks
// where columns did not suffice.
func (c *counting) run() error {
	if err := c.share(c.feed); err != nil || len(c.unsure) == 0 {
		return err
	}
	return c.share(c.feedTexts)
}

// share hands the blocks that feed finds to workers.
func (c *counting) share(feed func(ctx context.Context, blocks chan<- readBlock) error) error {
	workers, ctx := errgroup.WithContext(c.scan.ctx)
	blocks, counters := make(chan readBlock), make([]*ingest.Counter, min(runtime.GOMAXPROCS(0), ingest.MaxCounters-1))
	for i := range counters {
		counters[i] = c.count.NewCounter()
		workers.Go(func() error { return c.work(ctx, counters[i], blocks) })
	}
	err := feed(ctx, blocks)
	close(blocks)
	if failed := workers.Wait(); failed != nil {
		err = failed
	}
	for _, counter := range counters {
		c.headers.Merge(counter)
	}
	return err
}

// work counts blocks until there are no more, or the time is up.
func (c *counting) work(ctx context.Context, counter *ingest.Counter, blocks <-chan readBlock) error {
	var into unpacked
	for block := range blocks {
		if c.late() {
			c.endAt(block.of.Max)
			continue
		}
		if err := c.read(ctx, counter, block, &into); err != nil {
			return fmt.Errorf("cannot read block %s: %w", uuidText(block.of.ID), err)
		}
	}
	return nil
}

// read counts one block.
func (c *counting) read(ctx context.Context, counter *ingest.Counter, block readBlock, into *unpacked) error {
	if block.reads&ingest.ReadColumns == 0 {
		return c.readEntries(ctx, counter, block, into)
	}
	columns, rows, known, err := block.readColumns(c.scan.store.codec, into, c.count, block.of.Entries.Sum())
	switch {
	case err != nil:
		return err
	case !known:
		c.mu.Lock()
		defer c.mu.Unlock()
		c.unsure = append(c.unsure, block.of)
		return nil
	case block.reads == ingest.ReadColumns:
		counter.AddColumns(&block.of, &columns, rows)
		return nil
	}
	entries, err := block.entries(c.scan.store.codec, into)
	if err == nil && int64(len(entries)) != block.of.Entries.Sum() {
		err = errColumns
	}
	if err != nil {
		return err
	}
	columns.Attach(entries)
	counter.AddRows(entries, rows, block.of.Project)
	return nil
}

// readEntries counts one entry after the other.
func (c *counting) readEntries(ctx context.Context, counter *ingest.Counter, block readBlock, into *unpacked) error {
	if err := c.scan.store.fetch(ctx, &block.packed); err != nil {
		if c.scan.isGone(block.of.Ref) {
			return nil
		}
		return err
	}
	entries, err := block.entries(c.scan.store.codec, into)
	if err != nil {
		return err
	}
	for few := range slices.Chunk(entries, entriesAtOnce) {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if c.late() {
			c.endAt(block.of.Max)
			break
		}
		counter.Add(few, block.of.Project)
	}
	return nil
}

// entriesAtOnce is how many are counted between two looks at the clock.
const entriesAtOnce = 64

func (c *counting) late() bool { return !c.scan.store.clock().Before(c.scan.ends) }

// feed goes through the headers until the share is used up.
func (c *counting) feed(ctx context.Context, blocks chan<- readBlock) error {
	var due fetching
	for seen := false; ; seen = true {
		block, err := c.scan.Next()
		if err != nil {
			return err
		}
		if block != nil && seen && c.scan.Spent() {
			c.endAt(block.Max)
			block = nil
		}
		if block == nil {
			return c.fetch(ctx, &due, blocks)
		}
		reads, some := c.count.Reads(block)
		switch {
		case !some:
		case reads == 0:
			c.headers.AddHeader(block)
		default:
			if err := c.take(ctx, &due, block, reads, blocks); err != nil {
				return err
			}
		}
	}
}

// feedTexts reads blocks again, with their texts.
func (c *counting) feedTexts(ctx context.Context, blocks chan<- readBlock) error {
	var due fetching
	unsure := c.unsure
	slices.SortFunc(unsure, func(a, b ingest.Candidate) int { return b.Max.Compare(a.Max) })
	for i := range unsure {
		if i > 0 && c.scan.Spent() {
			c.endAt(unsure[i].Max)
			break
		}
		if err := c.take(ctx, &due, &unsure[i], ingest.ReadAll, blocks); err != nil {
			return err
		}
	}
	return c.fetch(ctx, &due, blocks)
}

// take has a block read, with those before it where they are many.
func (c *counting) take(ctx context.Context, due *fetching, block *ingest.Candidate, reads ingest.Reading, blocks chan<- readBlock) error {
	c.scan.read += due.add(block, reads)
	if due.bytes < fetchBytes {
		return nil
	}
	return c.fetch(ctx, due, blocks)
}

// fetch reads the due blocks and hands them on.
func (c *counting) fetch(ctx context.Context, due *fetching, blocks chan<- readBlock) error {
	for key, of := range due.of {
		found, err := key.read(c.scan, of)
		if err != nil {
			return fmt.Errorf("cannot read %d blocks: %w", len(of), err)
		}
		for _, block := range found {
			select {
			case blocks <- block:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	*due = fetching{}
	return nil
}

// fetching are blocks to read, by what is read together.
type fetching struct {
	of    map[fetchKey][]ingest.Candidate // bounded by fetchBytes
	bytes int
}

// fetchKey is a partition, and what is needed of its blocks.
type fetchKey struct {
	day   day
	reads ingest.Reading
}

// add notes a block, and returns about how many bytes reading it takes.
func (f *fetching) add(block *ingest.Candidate, reads ingest.Reading) (bytes int) {
	key := fetchKey{dayOf(block.RetentionDays, block.ReceivedAt), reads}
	if f.of == nil {
		f.of = map[fetchKey][]ingest.Candidate{}
	}
	f.of[key] = append(f.of[key], *block)
	if reads&ingest.ReadDirectory != 0 {
		bytes += directoryBytes * int(block.Entries.Sum())
	}
	if reads&ingest.ReadColumns != 0 {
		bytes += columnBytes * int(block.Entries.Sum())
	}
	if reads&ingest.ReadTexts != 0 {
		bytes += block.Bytes
	}
	f.bytes += bytes
	return bytes
}

// About how much of a directory and of columns an entry takes.
const (
	directoryBytes = 16
	columnBytes    = 8
)

// A readBlock is a block as it is stored, as far as it was read.
type readBlock struct {
	packed
	of    ingest.Candidate
	reads ingest.Reading
}

// read reads the blocks that are still there: days go, and blocks are merged.
func (k fetchKey) read(s *scan, of []ingest.Candidate) (found []readBlock, err error) {
	projects, received, ids := make([]string, len(of)), make([]time.Time, len(of)), make([]string, len(of))
	for i := range of {
		projects[i], received[i], ids[i] = of[i].Project, of[i].ReceivedAt, uuidText(of[i].ID)
	}
	part := func(reads ingest.Reading, columns, otherwise string) string {
		if k.reads&reads != 0 {
			return columns
		}
		return otherwise
	}
	args := []any{
		int16(k.day.retention), k.day.begins, k.day.ends(), string(s.organization), projects, received, ids, //nolint:gosec // bounded by the contract
	}
	err = s.query(fmt.Sprintf(`SELECT t.number - 1, %s, %s, %s
		FROM unnest($5::text[], $6::timestamptz[], $7::uuid[]) WITH ORDINALITY AS t (project, received_at, block, number)
		JOIN blocks AS b ON b.organization = $4 AND b.retention = $1 AND b.received_at >= $2 AND b.received_at < $3
			AND b.project = t.project AND b.received_at = t.received_at AND b.block = t.block`,
		part(ingest.ReadDirectory, `directory`, `NULL::bytea`), part(ingest.ReadColumns, `columns`, `NULL::bytea`),
		part(ingest.ReadTexts, textsColumns, `NULL::bytea, NULL::text, NULL::bigint, NULL::int`)), // pgx is slow where types differ
		args, func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b readBlock, err error) {
				var number int
				if err := row.Scan(append([]any{&number, &b.directory, &b.columns}, b.textsInto()...)...); err != nil {
					return b, err
				}
				b.of, b.reads = of[number], k.reads
				return b, nil
			})
			return err
		})
	return found, err
}
