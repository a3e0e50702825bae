package postgres

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
)

// toRead is a block or a bundle, and what a count reads of it.
type toRead struct {
	block ingest.Candidate
	reads ingest.Reading
}

// fetching are blocks to read, by what is read together.
type fetching struct {
	of    map[fetchKey][]ingest.Candidate // bounded by fetchBytes
	bytes int                             // about how many are read
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
		f.of = map[fetchKey][]ingest.Candidate{}
	}
	f.of[key] = append(f.of[key], r.block)
	if r.reads == ingest.ReadSummary {
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
