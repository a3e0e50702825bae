package postgres

import (
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
)

// toRead is a block, or a bundle with the header of all its blocks, and what a count reads of it.
type toRead struct {
	block   ingest.Candidate
	reads   ingest.Reading
	bundled []ingest.Candidate // of a bundle: its blocks that may match
}

// fetching are blocks to read, by what is read together.
type fetching struct {
	of      map[fetchKey][]ingest.Candidate // bounded by fetchBytes
	bundled map[[16]byte][]ingest.Candidate // of bundles, bounded by fetchBytes
	bytes   int                             // about how many are read
}

// fetchBytes is about how much is read in one query, and fetchedAhead how many
// blocks wait for a processor meanwhile. They bound the memory of a count, with
// the block that each processor unpacks.
const (
	fetchBytes   = 1 << 20
	fetchedAhead = 16
)

// fetchKey is a partition, and what is needed of its blocks.
type fetchKey struct {
	day   day
	reads ingest.Reading
}

// add notes a block, and returns about how many bytes it has, unpacked.
func (f *fetching) add(r toRead) (bytes int) {
	key := fetchKey{dayOf(r.block.RetentionDays, r.block.ReceivedAt), r.reads}
	if f.of == nil {
		f.of, f.bundled = map[fetchKey][]ingest.Candidate{}, map[[16]byte][]ingest.Candidate{}
	}
	f.of[key] = append(f.of[key], r.block)
	if r.reads == ingest.ReadSummary {
		f.bundled[r.block.ID] = r.bundled
		bytes += summaryBytes
	}
	entries := int(r.block.Entries.Sum())
	if r.reads&ingest.ReadDirectory != 0 {
		bytes += directoryBytes * entries
	}
	if r.reads&ingest.ReadColumns != 0 {
		bytes += columnBytes * entries
	}
	f.bytes += bytes
	if r.reads&ingest.ReadTexts != 0 {
		bytes += r.block.Bytes
		f.bytes += r.block.Bytes / textsPacked
	}
	return bytes
}

// About how much of a directory and of columns an entry takes, how much a summary
// takes, and how many times smaller texts are than they were.
const (
	directoryBytes = 16
	columnBytes    = 8
	summaryBytes   = 16 << 10
	textsPacked    = 8
)

// A readBlock is a block as it is stored, as far as it was read.
type readBlock struct {
	packed
	of      ingest.Candidate
	reads   ingest.Reading
	bundled []ingest.Candidate // of a bundle, as that of toRead
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
	err = s.query(fmt.Sprintf(`SELECT t.number - 1, %s, %s, %s, %s
		FROM unnest($5::text[], $6::timestamptz[], $7::uuid[]) WITH ORDINALITY AS t (project, received_at, block, number)
		JOIN blocks AS b ON b.organization = $4 AND b.retention = $1 AND b.received_at >= $2 AND b.received_at < $3
			AND b.project = t.project AND b.received_at = t.received_at AND b.block = t.block`,
		part(ingest.ReadDirectory, `directory`, `NULL::bytea`), part(ingest.ReadColumns, `columns`, `NULL::bytea`),
		part(ingest.ReadSummary, `summary`, `NULL::bytea`),
		part(ingest.ReadTexts, textsColumns, `NULL::bytea, NULL::text, NULL::bigint, NULL::int`)), // pgx is slow where types differ
		args, func(rows pgx.Rows) (err error) {
			found, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (b readBlock, err error) {
				var number int
				if err := row.Scan(append([]any{&number, &b.directory, &b.columns, &b.summary}, b.textsInto()...)...); err != nil {
					return b, err
				}
				b.of, b.reads = of[number], k.reads
				return b, nil
			})
			return err
		})
	return found, err
}

// gathering puts the blocks of bundles together that a count may count as one. The
// head of a bundle comes first. It counts as gone in part where blocks are missing.
type gathering struct {
	count *ingest.Count
	open  []*gathered // at most maxGathered
}

// gathered are the blocks of a bundle that have come.
type gathered struct {
	toRead
	left int // how many have not
}

// maxGathered is more bundles than mostly overlap.
const maxGathered = 64

// add takes the next block, and returns what is to be read now.
func (g *gathering) add(block *ingest.Candidate) (ready []toRead) {
	reads, some := g.count.Reads(block)
	i := slices.IndexFunc(g.open, func(b *gathered) bool { return b.block.ID == block.Bundle })
	switch {
	case i >= 0:
		g.open[i].join(block, some)
	case block.Bundled > 0 && g.count.IsSummed():
		if len(g.open) == maxGathered {
			ready, g.open = g.parts(g.open[0]), g.open[1:]
		}
		i, g.open = len(g.open), append(g.open, &gathered{toRead: toRead{block: *block}, left: block.Bundled})
		g.open[i].join(block, some)
	case some:
		return []toRead{{block: *block, reads: reads}}
	default:
		return nil
	}
	if of := g.open[i]; of.left == 0 {
		ready, g.open = append(ready, g.whole(of)...), slices.Delete(g.open, i, i+1)
	}
	return ready
}

// join adds a block, the head first.
func (b *gathered) join(block *ingest.Candidate, some bool) {
	if b.left--; block.ID != b.block.ID {
		b.block.Include(&block.Header)
	}
	if some {
		b.bundled = append(b.bundled, *block)
	}
}

// whole returns a bundle that has all its blocks.
func (g *gathering) whole(of *gathered) []toRead {
	of.block.Excluded = false // only the head is
	if reads, _ := g.count.Reads(&of.block); reads != ingest.ReadColumns || len(of.bundled) == 0 {
		return g.parts(of)
	}
	of.reads = ingest.ReadSummary
	return []toRead{of.toRead}
}

// parts returns the blocks of a bundle.
func (g *gathering) parts(of *gathered) (ready []toRead) {
	for _, block := range of.bundled {
		reads, _ := g.count.Reads(&block)
		ready = append(ready, toRead{block: block, reads: reads})
	}
	return ready
}

// rest returns the blocks of bundles that are not whole.
func (g *gathering) rest() (ready []toRead) {
	for _, of := range g.open {
		ready = append(ready, g.parts(of)...)
	}
	g.open = nil
	return ready
}
