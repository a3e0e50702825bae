package postgres

import (
	"cmp"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/weirlog/weir/ingest"
)

// maxBundled is the most blocks of a bundle.
const maxBundled = 32

// bundle makes bundles of the narrow blocks of one day. The head of a bundle,
// its newest block, has a header and a filter of the words of all, and a summary. Blocks that
// will be merged are in none, nor are those that lack values, which no filter excludes.
func bundle(blocks []*Block) {
	var all []*Block
	for _, b := range blocks {
		if b.Bytes >= ingest.SmallBlockBytes && !b.Words.Lacks && !isWide(&b.Header) {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b *Block) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Project, b.Project), b.Max.Compare(a.Max))
	})
	for len(all) > 0 {
		head, words, n := all[0], &ingest.Bundle{}, 0
		for n < min(len(all), maxBundled) && all[n].Organization == head.Organization && all[n].Project == head.Project && !words.Full() &&
			head.Max.Seconds-all[n].Max.Seconds <= narrow { // so that a search finds the head of each block
			words.Add(&all[n].Block)
			n++
		}
		head.of, head.bundled = words, n
		for _, b := range all[:n] {
			b.bundle = &head.ID
		}
		all = all[n:]
	}
}

// bundleRow is what the row of a head has more. A block that is alone has its own filter.
func (s *Store) bundleRow(b *Block) []any {
	if b.of == nil {
		return []any{nil, nil, nil, nil}
	}
	var words []byte
	if b.bundled > 1 {
		words = b.of.Filter()
	}
	return []any{int16(b.bundled), b.of.AppendHeader(nil), words, s.pack(b.of.AppendSummary)} //nolint:gosec // at most maxBundled
}

// partBundles ends bundles of a day of which blocks are gone: what is left counts as blocks.
const partBundles = `UPDATE blocks AS b SET bundle = NULL, bundled = NULL WHERE ` + ofDay + ` AND bundle = ANY($4)`

// bundlesAtOnce is how many bundles a search looks at together. It begins with
// them once it has looked at some headers, as most searches end before. A count does at once.
const bundlesAtOnce = 512

// bundles are those of one partition that a search has looked at.
type bundles struct {
	behind *ingest.Key        // the head of the last one
	end    *ingest.Key        // the same, until all headers up to it are read
	open   []openBundle       // whose blocks are looked at: of the last bundlesAtOnce, and of those before that overlap these
	whole  []ingest.Candidate // that count as one, in their order, as soon as headers before them are read
	begun  bool
	ended  bool
}

// An openBundle may have a match.
type openBundle struct {
	id    [16]byte
	begin ingest.Instant
}

// look looks at the next bundles, once all headers up to the last one are
// read. From then on a block is looked at only if its bundle may have a match, or
// if it is in none. It does not where the oldest come first.
func (h *headers) look(s *scan) error {
	hashes, of := s.search.Query.WordHashes(), &h.bundles
	if len(hashes) > maxLines {
		hashes = nil
	}
	counts := s.count != nil && s.count.CountsBundles()
	if h.reach.wide || s.search.OldestFirst || of.ended || of.end != nil || !counts && (s.fetched < minHeaders || len(hashes) == 0) {
		return nil
	}
	if !of.begun && h.behind != nil { // blocks behind it have heads up to an hour before it
		of.behind = &ingest.Key{First: ingest.Instant{Seconds: h.behind.First.Seconds + narrow + 1}}
	}
	if of.begun { // no others have older blocks
		of.open = slices.DeleteFunc(of.open, func(o openBundle) bool { return o.begin.Compare(of.behind.First) > 0 })
	}
	of.begun = true
	q := newBundleQuery(string(s.organization), s.search, h, hashes, s.store.bundles)
	seen := 0
	err := s.query(q.text.String(), q.args, func(rows pgx.Rows) (err error) {
		for ; rows.Next() && err == nil; seen++ {
			var bundle ingest.Candidate
			if bundle, err = scanBundle(rows, h.reach.day, hashes); err == nil {
				s.read += headerBytes + len(bundle.Words.Filter)
				of.take(s, bundle, seen+1 == s.store.bundles)
			}
		}
		return cmp.Or(err, rows.Err())
	})
	if of.ended = seen < s.store.bundles; !of.ended {
		of.end = of.behind
	}
	return err
}

// take decides about the next bundle. The headers of the last one are read, so that a search can end there.
func (b *bundles) take(s *scan, bundle ingest.Candidate, last bool) {
	key := s.search.Key(&bundle)
	b.behind = &key
	mayMatch, whole := s.search.MayFind(&bundle), false
	if s.count != nil && mayMatch {
		reads, _ := s.count.Reads(&bundle)
		whole = reads == 0 || reads == ingest.ReadColumns
	}
	if whole {
		bundle.Words = ingest.Words{} // which are valid until the next row
		b.whole = append(b.whole, bundle)
	}
	if !whole && (mayMatch || last) {
		b.open = append(b.open, openBundle{bundle.ID, bundle.Min})
	}
}

// join puts bundles that count as one among the headers, as far as these were read.
func (h *headers) join(search *ingest.Search) {
	of := &h.bundles
	read := slices.IndexFunc(of.whole, func(b ingest.Candidate) bool { return !h.ended && search.Sooner(*h.behind, search.Key(&b)) })
	if read < 0 {
		read = len(of.whole)
	}
	bundles := of.whole[:read]
	of.whole = of.whole[read:]
	if len(h.fetched) == 0 || len(bundles) == 0 {
		h.fetched = append(h.fetched, bundles...)
		return
	}
	h.fetched = append(h.fetched, bundles...)
	slices.SortFunc(h.fetched, func(a, b ingest.Candidate) int { return search.Key(&b).Compare(search.Key(&a)) })
}

// newBundleQuery selects heads behind the last one, in the order of blocks.
func newBundleQuery(organization string, search *ingest.Search, h *headers, hashes []uint64, size int) *headerQuery {
	q := &headerQuery{search: search}
	words := `''::bytea`
	if len(hashes) > 0 {
		words = q.lines(`coalesce(bundle_words, words)`, hashes)
	}
	q.begin(`block, project, received_at, max_seconds, max_nanos, bundled, bundle_header, `+words, organization, h, h.bundles.behind)
	q.write(` AND bundled IS NOT NULL`)
	q.end(h, size, 2)
	return q
}

// scanBundle reads the header of a bundle, whose words are valid until the next row.
func scanBundle(row pgx.CollectableRow, d day, hashes []uint64) (c ingest.Candidate, err error) {
	var nanos int32
	var header, words pgtype.DriverBytes
	if err := row.Scan(&c.ID, &c.Project, &c.ReceivedAt, &c.Max.Seconds, &nanos, &c.Bundled, &header, &words); err != nil {
		return c, err
	}
	c.Max.Nanos, c.RetentionDays = uint32(nanos), d.retention //nolint:gosec // as stored
	c.Words = ingest.Words{Filter: ingest.WordFilter(words), Of: hashes}
	return c, c.ReadBundle(header)
}

// without leaves out the blocks of bundles that are not open, and those behind the last head.
func (q *headerQuery) without(of *bundles) {
	switch {
	case !of.begun:
	case len(of.open) == 0:
		q.write(` AND bundle IS NULL`)
	default:
		ids := make([][16]byte, len(of.open))
		for i := range of.open {
			ids[i] = of.open[i].id
		}
		q.write(` AND (bundle IS NULL OR bundle IN (SELECT unnest(%s::uuid[])))`, q.arg(ids)) // which is hashed, and not estimated one by one
	}
	if of.end != nil {
		q.key(`max`, `>=`, of.end)
	}
}

// readBundles has a count go through the blocks of bundles, instead of what is left.
func (s *scan) readBundles(list []ingest.Candidate) {
	s.headers = nil
	for _, bundle := range list {
		d := dayOf(bundle.RetentionDays, bundle.ReceivedAt)
		i := slices.IndexFunc(s.headers, func(h *headers) bool { return h.reach.day == d })
		if i < 0 {
			i = len(s.headers)
			s.headers = append(s.headers, &headers{reach: reach{day: d}, bound: bundle.Max, size: countHeaders, bundles: bundles{ended: true}})
		}
		h := s.headers[i]
		h.only = append(h.only, bundle.ID)
		if bundle.Max.Compare(h.bound) > 0 {
			h.bound = bundle.Max
		}
	}
}
