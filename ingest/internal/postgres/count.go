package postgres

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
)

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
		scan.count = &count
		for _, h := range scan.headers {
			h.size = countHeaders
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
	unsure []ingest.Candidate // blocks and bundles whose columns or summaries don't know what is asked
}

// endAt notes that the share was used up at an instant.
func (c *counting) endAt(at ingest.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from == nil || c.from.Compare(at) < 0 {
		c.from = &at
	}
}

// run counts by headers, summaries and columns, and then by columns and texts
// of blocks where these did not suffice.
func (c *counting) run() error {
	err := c.share(c.feed)
	for err == nil && len(c.unsure) > 0 {
		err = c.share(c.feedUnsure)
	}
	return err
}

// share hands the blocks that feed finds to workers.
func (c *counting) share(feed func(ctx context.Context, blocks chan<- readBlock) error) error {
	workers, ctx := errgroup.WithContext(c.scan.ctx)
	blocks, counters := make(chan readBlock, fetchedAhead), make([]*ingest.Counter, min(runtime.GOMAXPROCS(0), ingest.MaxCounters-1))
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
	into := c.scan.store.takeMemory()
	defer c.scan.store.memory.Put(into)
	for block := range blocks {
		if c.late() {
			c.endAt(block.of.Max)
			continue
		}
		if err := c.read(ctx, counter, block, into); err != nil {
			return fmt.Errorf("cannot read block %s: %w", uuidText(block.of.ID), err)
		}
	}
	return nil
}

// read counts one block.
func (c *counting) read(ctx context.Context, counter *ingest.Counter, block readBlock, into *unpacked) error {
	switch {
	case block.reads == ingest.ReadSummary:
		return c.readSummary(counter, block, into)
	case block.reads&ingest.ReadColumns == 0:
		return c.readEntries(ctx, counter, block, into)
	}
	columns, rows, known, err := block.readColumns(c.scan.store.codec, into, c.count, block.of.Entries.Sum())
	switch {
	case err != nil:
		return err
	case !known:
		c.isUnsure(block.of)
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

// readSummary counts a bundle.
func (c *counting) readSummary(counter *ingest.Counter, bundle readBlock, into *unpacked) error {
	summary, known, err := bundle.packed.readSummary(c.scan.store.codec, into, c.count)
	if err == nil && (!known || !counter.AddSummary(&bundle.of, &summary)) {
		c.isUnsure(bundle.of)
	}
	return err
}

func (c *counting) isUnsure(of ingest.Candidate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unsure = append(c.unsure, of)
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
		if !some {
			continue
		}
		if block.Bundled > 0 && reads != 0 {
			reads = ingest.ReadSummary
		}
		if err := c.take(ctx, &due, toRead{*block, reads}, blocks); err != nil {
			return err
		}
	}
}

// feedUnsure reads the blocks of bundles, and the texts of blocks.
func (c *counting) feedUnsure(ctx context.Context, blocks chan<- readBlock) error {
	list := c.unsure
	c.unsure = nil
	if bundles := slices.DeleteFunc(slices.Clone(list), func(of ingest.Candidate) bool { return of.Bundled == 0 }); len(bundles) > 0 {
		c.unsure = slices.DeleteFunc(list, func(of ingest.Candidate) bool { return of.Bundled > 0 })
		c.scan.readBundles(bundles)
		return c.feed(ctx, blocks)
	}
	var due fetching
	slices.SortFunc(list, func(a, b ingest.Candidate) int { return b.Max.Compare(a.Max) })
	for i := range list {
		if i > 0 && c.scan.Spent() {
			c.endAt(list[i].Max)
			break
		}
		if err := c.take(ctx, &due, toRead{list[i], ingest.ReadAll}, blocks); err != nil {
			return err
		}
	}
	return c.fetch(ctx, &due, blocks)
}

// take counts a block, or has it read, with those before it where they are many.
func (c *counting) take(ctx context.Context, due *fetching, block toRead, blocks chan<- readBlock) error {
	if block.reads == 0 {
		c.headers.AddHeader(&block.block)
		return nil
	}
	c.scan.read += due.add(block)
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
