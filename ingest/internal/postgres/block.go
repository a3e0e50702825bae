package postgres

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/compression"
	"github.com/weirlog/weir/shared/pg"
)

// A Block is a block of entries with its owner.
type Block struct {
	ingest.Block
	ID           string // a UUID
	Retention    int    // for how many days it is kept
	Organization string
	Project      string

	at      time.Time      // by which it lies in a partition, once it does
	bundle  *string        // the ID of the head of its bundle; nil: it is in none
	of      *ingest.Bundle // of a head
	bundled int            // how many blocks that are
}

// receivedAt is the receipt of the block's latest entry, and so the
// partition's day. If that partition is gone, after a slow clock or a
// wait in the log, it is now: the block is kept from now on.
func (b *Block) receivedAt(now time.Time) time.Time {
	latest := b.latest()
	if dayOf(b.Retention, latest).past(dayOf(b.Retention, now).begins) {
		latest = now
	}
	return latest.Truncate(time.Microsecond)
}

// latest is when the last of its entries was received.
func (b *Block) latest() time.Time {
	latest := b.List[0].ReceivedAt
	for i := range b.List {
		if at := b.List[i].ReceivedAt; at.After(latest) {
			latest = at
		}
	}
	return latest.Truncate(time.Microsecond)
}

var blockColumns = []string{"organization", "project", "received_at", "block", "min_seconds", "min_nanos", "max_seconds", "max_nanos",
	"levels", "entries", "text_bytes", "words", "words_lack", "directory", "columns", "texts", "retention", "environments",
	"bundle", "bundled", "bundle_header", "bundle_words", "summary"}

// Keep copies the blocks into the partitions of their days,
// which it creates where they are missing.
func (s *Store) Keep(ctx context.Context, tx pgx.Tx, blocks []Block) error {
	if len(blocks) == 0 {
		return nil
	}
	now, byDay := s.clock(), map[day][]*Block{}
	for i := range blocks {
		b := &blocks[i]
		b.at = b.receivedAt(now)
		d := dayOf(b.Retention, b.at)
		byDay[d] = append(byDay[d], b)
	}
	if err := ensureDays(ctx, tx, byDay); err != nil {
		return err
	}
	for d, list := range byDay {
		if err := s.copy(ctx, tx, d, list); err != nil {
			return err
		}
	}
	if err := saveReaches(ctx, tx, byDay); err != nil {
		return err
	}
	s.metrics.kept(blocks)
	return saveSmall(ctx, tx, byDay, now)
}

// copy writes blocks of one day.
func (s *Store) copy(ctx context.Context, tx pgx.Tx, d day, blocks []*Block) error {
	bundle(blocks)
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{d.partition()}, blockColumns, pgx.CopyFromRows(s.rows(blocks))); err != nil {
		return fmt.Errorf("cannot keep %d blocks in %q: %w", len(blocks), d.partition(), err)
	}
	return nil
}

// rows compresses the blocks, on as many processors as there are.
func (s *Store) rows(blocks []*Block) [][]any {
	rows := make([][]any, len(blocks))
	var workers errgroup.Group
	workers.SetLimit(runtime.GOMAXPROCS(0))
	for i, b := range blocks {
		workers.Go(func() error {
			rows[i] = s.row(b)
			return nil
		})
	}
	_ = workers.Wait() // none fails
	return rows
}

func (s *Store) row(b *Block) []any {
	directory := s.codec.Pack(b.AppendDirectory(make([]byte, 0, 32*len(b.List))))
	texts := s.codec.Pack(b.AppendTexts(make([]byte, 0, b.Bytes)))
	return append([]any{b.Organization, b.Project, b.at, b.ID, b.Min.Seconds, int32(b.Min.Nanos), b.Max.Seconds, int32(b.Max.Nanos),
		int16(b.Levels), b.Entries, int32(b.Bytes), []byte(b.Words.Filter), b.Words.Lacks, //nolint:gosec // bounded by the size of a record
		directory, s.packColumns(b), texts, int16(b.Retention), int64(b.Environments), //nolint:gosec // bounded by the contract; 64 bits either way
		b.bundle}, s.bundleRow(b)...)
}

// A packed block is what its row has of its entries, compressed; of each
// part nil where it was not read.
type packed struct {
	directory, columns, texts, summary []byte

	object *string // with the texts; nil: they are in the row
	at     *int64
	bytes  *int32
}

// textsColumns are the columns that say where texts are, for packed.texts.
const textsColumns = `texts, object::text, object_at, object_bytes`

func (p *packed) textsInto() []any { return []any{&p.texts, &p.object, &p.at, &p.bytes} }

func scanPacked(row pgx.CollectableRow) (p packed, err error) {
	err = row.Scan(append([]any{&p.directory}, p.textsInto()...)...)
	return p, err
}

// fetch reads the texts where they are in an object.
func (s *Store) fetch(ctx context.Context, p *packed) (err error) {
	switch {
	case p.object == nil:
		return nil
	case s.objects == nil:
		return errNoArchive
	}
	p.texts, err = s.objects.GetRange(ctx, *p.object, *p.at, int64(*p.bytes))
	return err
}

// unpacked is memory to unpack blocks into, one after the other.
type unpacked struct {
	directory, texts []byte
	entries          []ingest.Stored
	columns          [][]byte // their parts

	ofBlock, ofBundle head
}

// takeMemory returns memory that is to be put back. It knows nothing of what was read before.
func (s *Store) takeMemory() *unpacked {
	into := s.memory.Get().(*unpacked) //nolint:forcetypeassert // it holds nothing else
	into.ofBlock, into.ofBundle = head{}, head{}
	return into
}

// size is how many bytes the last block has.
func (u *unpacked) size() int { return len(u.directory) + len(u.texts) }

// entries unpacks a block, without texts where they were not read. The entries are valid as long as into is not used again.
func (p packed) entries(codec *compression.Codec, into *unpacked) (entries []ingest.Stored, err error) {
	if into.directory, err = codec.Unpack(p.directory, into.directory); err != nil {
		return nil, fmt.Errorf("cannot unpack a directory of %d bytes: %w", len(p.directory), err)
	}
	if p.texts == nil {
		return ingest.ParseDirectory(into.directory)
	}
	if into.texts, err = codec.Unpack(p.texts, into.texts); err != nil {
		return nil, fmt.Errorf("cannot unpack texts of %d bytes: %w", len(p.texts), err)
	}
	into.entries, err = ingest.ParseEntries(into.entries, into.directory, into.texts)
	return into.entries, err
}

// The least and the most headers of blocks that are read together: twice
// as many each time, as most searches end soon; a count does not. A whole filter may take most of a megabyte.
const (
	minHeaders      = 16
	countHeaders    = 256
	maxHeaders      = 1024
	maxWholeHeaders = 256
)

// narrow is the longest span of a block, in seconds, outside the
// indexes of wide blocks.
const narrow = 3600

// planning allows the planner only indexes, whatever its statistics,
// and plans each query for its values: a generic plan locks all partitions.
const planning = `SET LOCAL enable_sort = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_custom_plan`

// selectPlanning is planning as one query of a batch.
const selectPlanning = `SELECT set_config(name, 'off', true) FROM unnest('{enable_sort, enable_bitmapscan, enable_seqscan}'::text[]) AS name`

// headers are those of an organization's blocks in one
// partition, in the order of a search. They are queried when the
// search gets there: until then a bound suffices.
type headers struct {
	reach   reach
	bound   ingest.Instant
	behind  *ingest.Key // the last one that was fetched, or that an earlier page has seen
	fetched []ingest.Candidate
	sifted  int // how many of these were sifted
	size    int // how many to read next
	begun   bool
	ended   bool
	bundles bundles
	only    [][16]byte // blocks of these bundles; nil: all
}

// headersOf returns those that may match. Narrow blocks begin near the
// searched times, wide ones anywhere, so they are queried separately.
func headersOf(reaches []reach, search *ingest.Search) (all []*headers) {
	for _, r := range reaches {
		first, last := ingest.Instant{Seconds: r.from}, ingest.Instant{Seconds: r.to, Nanos: maxNanos}
		if search.Reaches(first, last) {
			all = append(all, &headers{reach: r, bound: search.First(&ingest.Header{Min: first, Max: last}), behind: search.Start.Seen, size: minHeaders})
		}
	}
	return all
}

const maxNanos = 999_999_999

// mayBefore reports whether a header may come before key.
func (h *headers) mayBefore(search *ingest.Search, key ingest.Key) bool {
	best := ingest.Key{First: h.bound}
	if !search.OldestFirst {
		for i := range best.ID {
			best.ID[i] = math.MaxUint8
		}
	}
	return search.Sooner(best, key)
}

// fetch reads the next headers.
func (h *headers) fetch(s *scan) error {
	if err := h.look(s); err != nil {
		return err
	}
	q := newHeaderQuery(string(s.organization), s.search, h)
	h.begun = true
	err := s.query(q.text.String(), q.args, func(rows pgx.Rows) (err error) {
		h.fetched, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (ingest.Candidate, error) {
			c, err := scanHeader(row, h.reach.day, q.hashes)
			s.read += len(c.Words.Filter)
			c.Excluded, c.Words = !s.search.MayFind(&c), ingest.Words{}
			return c, err
		})
		return err
	})
	if err != nil {
		return err
	}
	s.fetched += len(h.fetched)
	h.advance(s.search)
	h.join(s.search)
	most := maxHeaders
	if q.whole {
		most = maxWholeHeaders
	}
	h.size = min(2*h.size, most)
	return nil
}

// advance notes where the next headers begin, after as many as were asked for, or fewer.
func (h *headers) advance(search *ingest.Search) {
	switch {
	case len(h.fetched) == h.size:
		last := search.Key(&h.fetched[len(h.fetched)-1])
		h.behind = &last
	case h.bundles.end != nil:
		if h.behind == nil || search.Sooner(*h.behind, *h.bundles.end) { // it looks at heads from before it
			h.behind = h.bundles.end
		}
		h.bundles.end = nil
	default:
		h.ended = true
	}
}

// scanHeader reads a header, whose words are valid until the next row.
func scanHeader(row pgx.CollectableRow, d day, hashes []uint64) (c ingest.Candidate, err error) {
	var minNanos, maxNanos int32
	var levels int16
	var environments int64
	var words pgtype.DriverBytes
	var lacks bool
	err = row.Scan(&c.ID, &c.Project, &c.ReceivedAt, &c.Min.Seconds, &minNanos, &c.Max.Seconds, &maxNanos, &levels, &c.Entries, &environments, &c.Bytes,
		&lacks, &words)
	c.Words = ingest.Words{Filter: ingest.WordFilter(words), Of: hashes, Lacks: lacks}
	c.Min.Nanos, c.Max.Nanos, c.Levels = uint32(minNanos), uint32(maxNanos), ingest.SeveritySet(levels) //nolint:gosec // as stored
	c.Environments = ingest.EnvironmentSet(environments)                                                //nolint:gosec // 64 bits either way
	c.RetentionDays = d.retention
	return c, err
}

// query runs a query of the scan. It holds the locks of one partition,
// however many a page reads.
func (s *scan) query(text string, args []any, read func(rows pgx.Rows) error) error {
	return pg.QueryInSavepoint(s.ctx, s.tx, text, args, read)
}

// A headerQuery selects headers of one partition by the order of an
// index only, and without those of bundles that were counted: any other
// condition would skip headers uncounted, and a sort would read them all
// for the first.
type headerQuery struct {
	search *ingest.Search
	text   strings.Builder
	args   []any
	hashes []uint64 // whose lines of the filters it selects
	whole  bool     // it selects whole filters
}

func newHeaderQuery(organization string, search *ingest.Search, h *headers) *headerQuery {
	q := &headerQuery{search: search}
	q.begin(headerColumns+q.words(), organization, h, h.behind)
	q.without(&h.bundles)
	if h.only != nil {
		q.write(` AND bundle = ANY(%s::uuid[])`, q.arg(h.only))
	}
	q.end(h, h.size, 1)
	return q
}

const headerColumns = `block, project, received_at, min_seconds, min_nanos, max_seconds, max_nanos, levels, entries, environments, text_bytes, words_lack, `

func (q *headerQuery) write(format string, args ...any) { fmt.Fprintf(&q.text, format, args...) }

// arg is a parameter's place in the query.
func (q *headerQuery) arg(value any) string {
	q.args = append(q.args, value)
	return fmt.Sprintf("$%d", len(q.args))
}

// begin selects headers by indexed conditions, and names the
// partition by its columns.
func (q *headerQuery) begin(columns, organization string, h *headers, after *ingest.Key) {
	d := h.reach.day
	q.write(`SELECT %s FROM blocks WHERE retention = %s AND received_at >= %s AND received_at < %s AND organization = %s`,
		columns, q.arg(int16(d.retention)), q.arg(d.begins), q.arg(d.ends()), q.arg(organization)) //nolint:gosec // bounded by the contract
	if q.search.Project != "" && !h.reach.wide { // Find leaves out other projects among wide ones, whose index has none
		q.write(` AND project = %s`, q.arg(q.search.Project))
	}
	end, behind := `max`, `<`
	if q.search.OldestFirst {
		end, behind = `min`, `>`
	}
	if after != nil {
		q.key(end, behind, after)
	}
	if q.search.OldestFirst && q.search.To != nil {
		q.write(` AND min_seconds <= %s`, q.arg(q.search.To.Seconds))
	}
	if !q.search.OldestFirst && q.search.From != nil {
		q.write(` AND max_seconds >= %s`, q.arg(q.search.From.Seconds))
	}
}

// key compares the key of a block.
func (q *headerQuery) key(end, operator string, with *ingest.Key) {
	q.write(` AND (%[1]s_seconds, %[1]s_nanos, block) %[2]s (%[3]s, %[4]s, %[5]s::uuid)`, end, operator,
		q.arg(with.First.Seconds), q.arg(int32(with.First.Nanos)), q.arg(uuidText(with.ID))) //nolint:gosec // below 1e9
}

// words selects the lines of the filter that the query needs, or all of
// them where it needs many, and none where the levels decide.
func (q *headerQuery) words() string {
	needed := q.search.Query.WordHashes()
	if len(needed) == 0 {
		return `''::bytea`
	}
	lines := `words`
	q.whole = len(needed) > maxLines
	if !q.whole {
		q.hashes = needed
		lines = q.lines(`words`, needed)
	}
	if q.search.Levels == 0 {
		return lines
	}
	return `CASE WHEN levels & ` + q.arg(int16(q.search.Levels)) + ` <> 0 THEN ` + lines + ` ELSE '' END`
}

// lines selects the lines of hashes in a filter.
func (q *headerQuery) lines(column string, hashes []uint64) string {
	list := make([]string, len(hashes))
	for i, hash := range hashes {
		list[i] = fmt.Sprintf(`substring(%[1]s FROM 1 + %[2]d * (%[3]s::bigint * (octet_length(%[1]s) / %[2]d) >> 32)::int FOR %[2]d)`,
			column, ingest.FilterLine, q.arg(int64(hash>>32))) //nolint:gosec // half of it
	}
	return strings.Join(list, ` || `)
}

// maxLines is how many lines are read one by one: about as much work as a whole filter.
const maxLines = 8

func (q *headerQuery) end(h *headers, size int, further int64) {
	if h.reach.wide {
		q.write(` AND max_seconds - min_seconds > %d`, narrow)
	} else {
		q.near(further)
	}
	if q.search.OldestFirst {
		q.write(` ORDER BY min_seconds, min_nanos, block LIMIT %d`, size)
	} else {
		q.write(` ORDER BY max_seconds DESC, max_nanos DESC, block DESC LIMIT %d`, size)
	}
}

// near is the condition that a block is narrow and reaches the first
// searched time, or is the head of such a block: so many hours further.
func (q *headerQuery) near(further int64) {
	q.write(` AND max_seconds - min_seconds <= %d`, narrow)
	after := q.search.Start.After
	if q.search.OldestFirst {
		from := q.search.From
		if after != nil && (from == nil || from.Compare(after.Time) < 0) {
			from = &after.Time
		}
		if from != nil {
			q.write(` AND min_seconds >= %s`, q.arg(from.Seconds-narrow))
		}
		return
	}
	to := q.search.To
	if after != nil && (to == nil || to.Compare(after.Time) > 0) {
		to = &after.Time
	}
	if to != nil {
		q.write(` AND max_seconds <= %s`, q.arg(to.Seconds+further*narrow))
	}
}
