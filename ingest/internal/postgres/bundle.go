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
// its newest block, has a filter of the words of all, and a summary. Blocks that
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
		for n < min(len(all), maxBundled) && all[n].Organization == head.Organization && all[n].Project == head.Project && !words.Full() {
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
func (s *Store) bundleRow(b *Block) (words []byte, bundled *int16, summary []byte) {
	if b.of == nil {
		return nil, nil, nil
	}
	if b.bundled > 1 {
		words = b.of.Filter()
	}
	many := int16(b.bundled) //nolint:gosec // at most maxBundled
	return words, &many, s.pack(b.of.AppendSummary)
}

// bundlesAtOnce is how many bundles a search looks at together. It begins with
// them once it has looked at some headers, as most searches end before.
const bundlesAtOnce = 512

// bundles are those of one partition that a search has looked at.
type bundles struct {
	behind   *ingest.Key // the head of the last one
	end      *ingest.Key // the same, until all headers up to it are read
	excluded []string
	ended    bool
}

// exclude looks at the next bundles, once all headers up to the last one are
// read. A block is looked at by itself where its bundle was not, or is gone in
// part, and where the oldest come first.
func (h *headers) exclude(s *scan) error {
	hashes, of := s.search.Query.WordHashes(), &h.bundles
	if h.reach.wide || s.search.OldestFirst || s.fetched < minHeaders || of.ended || of.end != nil || len(hashes) == 0 || len(hashes) > maxLines {
		return nil
	}
	if of.behind == nil {
		of.behind = h.behind
	}
	of.excluded = slices.Clone(of.excluded[max(0, len(of.excluded)-maxBundled):]) // which may have older blocks
	q := newBundleQuery(string(s.organization), s.search, h, hashes, s.store.bundles)
	var heads []ingest.Key
	err := s.query(q.text.String(), q.args, func(rows pgx.Rows) error {
		var head ingest.Key
		var nanos int32
		var words pgtype.DriverBytes
		_, err := pgx.ForEachRow(rows, []any{&head.ID, &head.First.Seconds, &nanos, &words}, func() error {
			s.read += headerBytes + len(words)
			head.First.Nanos = uint32(nanos) //nolint:gosec // as stored
			heads = append(heads, head)
			last := len(heads) == s.store.bundles // its headers are read, so that a search can end there
			if !last && !s.search.Query.MayMatchIn(ingest.Words{Filter: ingest.WordFilter(words), Of: hashes}) {
				of.excluded = append(of.excluded, uuidText(head.ID))
			}
			return nil
		})
		return err
	})
	if of.ended = len(heads) < s.store.bundles; !of.ended {
		of.end = &heads[len(heads)-1]
		of.behind = of.end
	}
	return err
}

// newBundleQuery selects heads behind the last one, in the order of blocks.
func newBundleQuery(organization string, search *ingest.Search, h *headers, hashes []uint64, size int) *headerQuery {
	q := &headerQuery{search: search}
	q.begin(`block, max_seconds, max_nanos, `+q.lines(`bundle_words`, hashes), organization, h, h.bundles.behind)
	q.write(` AND bundle_words IS NOT NULL`)
	q.end(h, size)
	return q
}

// without leaves out the blocks of excluded bundles, and those behind the last head.
func (q *headerQuery) without(of *bundles) {
	if len(of.excluded) > 0 {
		q.write(` AND (bundle IN (SELECT unnest(%s::uuid[]))) IS NOT TRUE`, q.arg(of.excluded)) // which is hashed, and not estimated one by one
	}
	if of.end != nil {
		q.key(`max`, `>=`, of.end)
	}
}
