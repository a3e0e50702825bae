package postgres

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/pg"
)

// headerBytes is the cost of skipping a block, without its filter of words.
const headerBytes = 128

// Search finds a page of an organization's entries, within the
// store's limits for one page.
func (s *Store) Search(ctx context.Context, organization pg.Organization, search ingest.Search) (result ingest.Result, err error) {
	result, _, err = s.SearchMoved(ctx, organization, search)
	return result, err
}

// SearchMoved is Search, and what of another store counts beside it.
func (s *Store) SearchMoved(ctx context.Context, organization pg.Organization, search ingest.Search) (
	result ingest.Result, moved ingest.Moved, err error,
) {
	err = s.scan(ctx, organization, &search, func(scan *scan) error {
		result, err = scan.search.Find(scan)
		if result.Next != nil && result.Next.Seen != nil {
			result.Next.Merges = scan.merges
		}
		result.Read, moved = int64(scan.read), scan.moved
		s.metrics.searched(scan.read, result.Incomplete)
		return err
	})
	return result, moved, err
}

// scan has read go through the blocks of a search.
func (s *Store) scan(ctx context.Context, organization pg.Organization, search *ingest.Search, read func(*scan) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.limits.Time+searchSlack)
	defer cancel()
	return s.replica.Snapshot(ctx, s.readers, func(tx pgx.Tx) error {
		search := *search // a retry begins like the first try
		scan := scan{
			ctx: ctx, store: s, tx: tx, organization: organization, search: &search,
			ends: s.clock().Add(s.limits.Time), most: s.limits.Bytes, unpacked: s.takeMemory(),
		}
		defer s.memory.Put(scan.unpacked)
		if search.Query.IsInColumns() {
			scan.sifts = &ingest.Count{Search: search}
		}
		if err := scan.begin(); err != nil {
			return fmt.Errorf("cannot search the log store: %w", err)
		}
		return read(&scan)
	})
}

// searchSlack is how long a search may exceed its share to read one more block.
const searchSlack = 15 * time.Second

// A scan reads the blocks of one search: the ingest.Blocks of one
// transaction, whose queries all see the same blocks.
type scan struct {
	ctx          context.Context //nolint:containedctx // of the transaction, with which the scan ends
	store        *Store
	tx           pgx.Tx
	organization pg.Organization
	search       *ingest.Search
	ends         time.Time
	read, most   int // bytes of text and of headers
	headers      []*headers
	merges       int64 // of the organization's blocks, so far
	moved        ingest.Moved
	unpacked     *unpacked
	fetched      int // headers
	ahead        ahead
	count        *ingest.Count // whose bundles count as one where they can; nil: it is a search
	sifts        *ingest.Count // counts what the search finds, where columns can tell; nil: they can't
}

// begin finds the organization's partitions and what became of passed blocks.
// It asks for all at once.
func (s *scan) begin() error {
	batch := &pgx.Batch{}
	if err := pg.QueueAsOrganization(batch, s.organization); err != nil {
		return err
	}
	batch.Queue(selectPlanning)
	batch.Queue(selectMerges, s.organization).QueryRow(func(row pgx.Row) error { return row.Scan(&s.merges) })
	if s.store.moves {
		batch.Queue(selectMoved).QueryRow(func(row pgx.Row) error { return row.Scan(&s.moved.UpTo, &s.moved.Except) })
	}
	var reaches []reach
	batch.Queue(selectReaches, s.organization).Query(func(rows pgx.Rows) (err error) {
		reaches, err = pgx.CollectRows(rows, scanReach)
		return err
	})
	if err := s.tx.SendBatch(s.ctx, batch).Close(); err != nil {
		return err
	}
	if err := s.resume(); err != nil {
		return err
	}
	s.headers = headersOf(reaches, s.search)
	return nil
}

// Spent reports whether the search has used its share of bytes or time.
func (s *scan) Spent() bool {
	return s.read >= s.most || !s.store.clock().Before(s.ends)
}

// Next returns the next header of all partitions.
func (s *scan) Next() (*ingest.Candidate, error) {
	for {
		from := s.first()
		if due := s.due(from); due != nil {
			s.read += headerBytes
			if err := due.fetch(s); err != nil {
				return nil, fmt.Errorf("cannot read the log store's headers: %w", err)
			}
			continue
		}
		if from == nil {
			return nil, nil //nolint:nilnil // there is no further header
		}
		if err := s.sift(from); err != nil {
			return nil, fmt.Errorf("cannot read the log store's columns: %w", err)
		}
		next := &from.fetched[0]
		from.fetched, from.sifted = from.fetched[1:], max(0, from.sifted-1)
		s.ahead.from, s.ahead.size = from, next.Bytes
		s.read += headerBytes
		return next, nil
	}
}

// first returns where the first fetched header comes from.
func (s *scan) first() (from *headers) {
	for _, h := range s.headers {
		if len(h.fetched) > 0 && (from == nil || s.search.Sooner(s.search.Key(&h.fetched[0]), s.search.Key(&from.fetched[0]))) {
			from = h
		}
	}
	return from
}

// due returns the headers to fetch before those of from can be next; nil: none.
func (s *scan) due(from *headers) (due *headers) {
	for _, h := range s.headers {
		switch {
		case len(h.fetched) > 0 || h.ended:
		case h.begun:
			return h
		case from != nil && !h.mayBefore(s.search, s.search.Key(&from.fetched[0])):
		case due == nil || s.search.Sooner(ingest.Key{First: h.bound}, ingest.Key{First: due.bound}):
			due = h
		}
	}
	return due
}

// How many headers are sifted at once, and after how many blocks that did
// not fill the page.
const (
	siftHeaders = 16
	siftAfter   = 2
)

// sift excludes those of the next blocks that have no match by their
// columns: they are read in a fiftieth of the time. Pages that fill soon
// do without.
func (s *scan) sift(from *headers) error {
	if s.sifts == nil || s.ahead.opened < siftAfter || from.sifted > 0 || from.fetched[0].Excluded {
		return nil
	}
	from.sifted = min(len(from.fetched), siftHeaders)
	var due []ingest.Candidate
	for _, c := range from.fetched[:from.sifted] {
		if reads, some := s.sifts.Reads(&c); some && reads&ingest.ReadColumns != 0 {
			due = append(due, c)
			s.read += columnBytes * int(c.Entries.Sum())
		}
	}
	if len(due) == 0 {
		return nil
	}
	blocks, err := fetchKey{from.reach.day, ingest.ReadColumns}.read(s, due)
	if err != nil {
		return err
	}
	s.ahead.rows = map[[16]byte][]bool{}
	for _, block := range blocks {
		if !s.mayFind(&block) {
			i := slices.IndexFunc(from.fetched, func(c ingest.Candidate) bool { return c.ID == block.of.ID })
			from.fetched[i].Excluded = true
		}
	}
	return nil
}

// mayFind reports whether a block may have a match, by its columns. Where
// these are damaged, the texts decide.
func (s *scan) mayFind(block *readBlock) bool {
	_, rows, known, err := block.readColumns(s.store.codec, s.unpacked, s.sifts, block.of.Entries.Sum())
	if err != nil || !known {
		return true
	}
	s.ahead.rows[block.of.ID] = rows
	return slices.Contains(rows, true)
}

// isGone reports whether a block of the snapshot is there no more, as with it
// its object goes.
func (s *scan) isGone(block ingest.Ref) (gone bool) {
	err := pg.ReadAs(s.ctx, s.store.readers, s.organization, func(tx pgx.Tx) error {
		return tx.QueryRow(s.ctx, `SELECT NOT EXISTS (SELECT FROM blocks
			WHERE organization = $1 AND project = $2 AND received_at = $3 AND block = $4::uuid AND retention = $5)`,
			s.organization, block.Project, block.ReceivedAt, uuidText(block.ID), int16(block.RetentionDays)).Scan(&gone) //nolint:gosec // bounded by the contract
	})
	return err == nil && gone
}

func uuidText(id [16]byte) string { return hex.EncodeToString(id[:]) }

// A reach is where in a partition an organization has blocks of one
// kind, and the bounds of their event times.
type reach struct {
	day      day
	wide     bool // blocks of more than an hour, or others
	from, to int64
}

// sooner is the order of the columns.
func (r reach) sooner(other reach) int {
	wide := func(r reach) int {
		if r.wide {
			return 1
		}
		return 0
	}
	return cmp.Or(cmp.Compare(r.day.retention, other.day.retention), r.day.begins.Compare(other.day.begins), cmp.Compare(wide(r), wide(other)),
		cmp.Compare(r.from, other.from), cmp.Compare(r.to, other.to))
}

// reachOf has bounds that are rounded, so that few of them differ.
func reachOf(d day, block *ingest.Header) reach {
	from, to := ingest.Rounded(block.Min, block.Max, d.begins)
	return reach{day: d, wide: isWide(block), from: from, to: to}
}

func isWide(block *ingest.Header) bool { return block.Max.Seconds-block.Min.Seconds > narrow }

// An ownedReach is a reach of an organization.
type ownedReach struct {
	organization string
	reach        reach
}

// saveReaches stores where blocks are, for searches.
func saveReaches(ctx context.Context, tx pgx.Tx, blocks map[day][]*Block) error {
	var organizations []string
	var retentions []int16
	var days []time.Time
	var wide []bool
	var from, to []int64
	for _, r := range reachesOf(blocks) {
		organizations, days, wide = append(organizations, r.organization), append(days, r.reach.day.begins), append(wide, r.reach.wide)
		retentions = append(retentions, int16(r.reach.day.retention)) //nolint:gosec // bounded by the contract
		from, to = append(from, r.reach.from), append(to, r.reach.to)
	}
	_, err := tx.Exec(ctx, `INSERT INTO block_days SELECT * FROM unnest($1::text[], $2::smallint[], $3::date[], $4::boolean[], $5::bigint[], $6::bigint[])
		ON CONFLICT DO NOTHING`, organizations, retentions, days, wide, from, to)
	if err != nil {
		return fmt.Errorf("cannot save where blocks lie: %w", err)
	}
	return nil
}

// reachesOf are the reaches of blocks, each once, in the
// order of the columns: transactions lock rows in one order.
func reachesOf(blocks map[day][]*Block) []ownedReach {
	seen := map[ownedReach]bool{}
	for d, list := range blocks {
		for _, b := range list {
			seen[ownedReach{b.Organization, reachOf(d, &b.Header)}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b ownedReach) int {
		return cmp.Or(cmp.Compare(a.organization, b.organization), a.reach.sooner(b.reach))
	})
}

const selectReaches = `SELECT retention, day::timestamp AT TIME ZONE 'UTC', wide, min(from_seconds), max(to_seconds)
	FROM block_days WHERE organization = $1 GROUP BY retention, day, wide`

func scanReach(row pgx.CollectableRow) (r reach, err error) {
	var retention int
	var begins time.Time
	err = row.Scan(&retention, &begins, &r.wide, &r.from, &r.to)
	r.day = dayOf(retention, begins)
	return r, err
}
