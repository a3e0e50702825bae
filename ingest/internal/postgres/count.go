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

	mu   sync.Mutex
	from *ingest.Instant // as that of ingest.Counted
}

// endAt notes that the share was used up at an instant.
func (c *counting) endAt(at ingest.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.from == nil || c.from.Compare(at) < 0 {
		c.from = &at
	}
}

// run counts by headers, and hands the blocks that have to be read to
// workers.
func (c *counting) run() error {
	workers, ctx := errgroup.WithContext(c.scan.ctx)
	blocks, counters := make(chan readBlock), make([]*ingest.Counter, min(runtime.GOMAXPROCS(0), ingest.MaxCounters-1))
	for i := range counters {
		counters[i] = c.count.NewCounter()
		workers.Go(func() error { return c.work(ctx, counters[i], blocks) })
	}
	err := c.feed(ctx, blocks)
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
			c.endAt(block.last)
			continue
		}
		entries, err := block.entries(c.scan.store.codec, &into)
		if err != nil {
			return fmt.Errorf("cannot read block %s: %w", uuidText(block.id), err)
		}
		for few := range slices.Chunk(entries, entriesAtOnce) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if c.late() {
				c.endAt(block.last)
				break
			}
			counter.Add(few, block.project)
		}
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
		switch reads := c.count.Reads(block); reads {
		case ingest.ReadNothing:
		case ingest.ReadHeader:
			c.headers.AddHeader(block)
		default:
			c.scan.read += due.add(block, reads)
			if due.bytes >= fetchBytes {
				if err := c.fetch(ctx, &due, blocks); err != nil {
					return err
				}
			}
		}
	}
}

// fetch reads the due blocks and hands them on.
func (c *counting) fetch(ctx context.Context, due *fetching, blocks chan<- readBlock) error {
	for key := range due.of {
		found, err := due.of[key].read(c.scan, key)
		if err != nil {
			return fmt.Errorf("cannot read %d blocks: %w", len(due.of[key].ids), err)
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
	of    map[fetchKey]*fetchedBlocks // bounded by fetchBytes
	bytes int
}

// fetchKey is a partition, and whether the texts are needed.
type fetchKey struct {
	day   day
	texts bool
}

type fetchedBlocks struct {
	ids      []string
	received []time.Time
	projects []string
}

// add notes a block, and returns about how many bytes reading it takes.
func (f *fetching) add(block *ingest.Candidate, reads ingest.Reading) (bytes int) {
	key := fetchKey{dayOf(block.RetentionDays, block.ReceivedAt), reads == ingest.ReadTexts}
	if f.of == nil {
		f.of = map[fetchKey]*fetchedBlocks{}
	}
	list := f.of[key]
	if list == nil {
		list = new(fetchedBlocks)
		f.of[key] = list
	}
	list.ids = append(list.ids, uuidText(block.ID))
	list.received = append(list.received, block.ReceivedAt)
	list.projects = append(list.projects, block.Project)
	bytes = directoryBytes * int(block.Entries.Sum())
	if key.texts {
		bytes += block.Bytes
	}
	f.bytes += bytes
	return bytes
}

// directoryBytes is about how much of a directory an entry takes.
const directoryBytes = 16

// A readBlock is a block as it is stored; without texts where they don't count.
type readBlock struct {
	packed
	id      [16]byte
	project string
	last    ingest.Instant // of its entries
}

// read reads the blocks that are still there: days go, and blocks are merged.
func (f *fetchedBlocks) read(s *scan, of fetchKey) (found []readBlock, err error) {
	texts := `NULL`
	if of.texts {
		texts = `b.texts`
	}
	args := []any{
		int16(of.day.retention), of.day.begins, of.day.ends(), string(s.organization), f.projects, f.received, f.ids, //nolint:gosec // bounded by the contract
	}
	err = s.query(`SELECT b.block, b.project, b.max_seconds, b.max_nanos, b.directory, `+texts+`
		FROM unnest($5::text[], $6::timestamptz[], $7::uuid[]) AS t (project, received_at, block)
		JOIN blocks AS b ON b.organization = $4 AND b.retention = $1 AND b.received_at >= $2 AND b.received_at < $3
			AND b.project = t.project AND b.received_at = t.received_at AND b.block = t.block`,
		args, func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b readBlock, err error) {
				err = row.Scan(&b.id, &b.project, &b.last.Seconds, &b.last.Nanos, &b.directory, &b.texts)
				return b, err
			})
			return err
		})
	return found, err
}
