package ingest

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"slices"
	"time"
)

// A Search selects entries, in an order. Its zero value selects all, newest first.
type Search struct {
	Project     string          // empty: all projects of the organization
	Hidden      map[string]bool // except these
	From, To    *Instant        // event times from From on, before To; nil: no bound
	Levels      SeveritySet
	Environment string
	Query       Query
	OldestFirst bool
	Start       Position
	Limit       int // most entries of a page, at least 1
	MaxBytes    int // text of a page, besides the entry that exceeds it; 0: MaxPageBytes
}

// MaxPageBytes is the text at which a page ends, whatever its limit.
const MaxPageBytes = 8 << 20

// PageBytes is the text at which a page ends.
func (s *Search) PageBytes() int { return cmp.Or(s.MaxBytes, MaxPageBytes) }

// Matches reports whether an entry matches.
func (s *Search) Matches(entry *Stored) bool {
	return s.Levels.Has(entry.Level) && (s.Environment == "" || s.Environment == entry.Environment) && s.covers(entry.Place) && s.Query.Matches(entry)
}

// covers reports whether a place is in the search's times.
func (s *Search) covers(place Place) bool {
	if s.From != nil && place.Time.Compare(*s.From) < 0 || s.To != nil && place.Time.Compare(*s.To) >= 0 {
		return false
	}
	return s.Start.After == nil || s.before(*s.Start.After, place)
}

// reads reports whether the search covers a project.
func (s *Search) reads(project string) bool {
	return (s.Project == "" || s.Project == project) && !s.Hidden[project]
}

// MayFind reports whether a block may hold a match.
func (s *Search) MayFind(block *Candidate) bool {
	header := &block.Header
	if block.Excluded || !s.reads(block.Project) || !s.Reaches(header.Min, header.Max) {
		return false
	}
	return (s.Levels == 0 || s.Levels&header.Levels != 0) && header.Environments.MayHold(s.Environment) && s.Query.MayMatch(header)
}

// Reaches reports whether the search's times overlap first to last.
func (s *Search) Reaches(first, last Instant) bool {
	if s.From != nil && last.Compare(*s.From) < 0 || s.To != nil && first.Compare(*s.To) >= 0 {
		return false
	}
	after := s.Start.After
	switch {
	case after == nil:
		return true
	case s.OldestFirst:
		return last.Compare(after.Time) >= 0
	}
	return first.Compare(after.Time) <= 0
}

// begin returns the place before all matches; nil: none. Blocks that
// overlap it do not decide what comes next.
func (s *Search) begin() *Place {
	bound := s.To
	if s.OldestFirst {
		bound = s.From
	}
	if bound == nil {
		return s.Start.After
	}
	begin := s.Frontier(*bound)
	if after := s.Start.After; after != nil && s.before(begin, *after) {
		return after
	}
	return &begin
}

// before reports whether p comes before q in the search's order.
func (s *Search) before(p, q Place) bool {
	if s.OldestFirst {
		return p.Compare(q) < 0
	}
	return p.Compare(q) > 0
}

// First is the earliest place of a block's entries in the
// search. Blocks are read in this order.
func (s *Search) First(header *Header) Instant {
	if s.OldestFirst {
		return header.Min
	}
	return header.Max
}

// Frontier is the place just before everything at time: a page
// that ends there continues with all of it.
func (s *Search) Frontier(time Instant) Place {
	if s.OldestFirst {
		return Place{Time: time, Index: -1}
	}
	last := Place{Time: time, Index: math.MaxInt}
	for i := range last.Batch {
		last.Batch[i] = 0xff
	}
	return last
}

// justBefore is a place that comes before p, with none between them.
func (s *Search) justBefore(p Place) Place {
	if s.OldestFirst {
		p.Index--
	} else {
		p.Index++
	}
	return p
}

// A Ref names a block in its store.
type Ref struct {
	Project       string
	ReceivedAt    time.Time
	RetentionDays int
	ID            [16]byte
}

// A Candidate is a block that a search has not read.
type Candidate struct {
	Header
	Ref
	Excluded bool // by its words, which are not kept

	Bundled int // of a bundle, which is named by its newest block: how many blocks it has; 0: it is a block
}

// A Key is the order of blocks in a search: by First, then by id.
type Key struct {
	First Instant
	ID    [16]byte
}

// Compare orders keys: negative when k is before l, oldest first.
func (k Key) Compare(l Key) int {
	return cmp.Or(k.First.Compare(l.First), bytes.Compare(k.ID[:], l.ID[:]))
}

// Key returns the key of a block in the search.
func (s *Search) Key(block *Candidate) Key { return Key{First: s.First(&block.Header), ID: block.ID} }

// Sooner reports whether the search reaches the block at k before that at l.
func (s *Search) Sooner(k, l Key) bool {
	if s.OldestFirst {
		return k.Compare(l) < 0
	}
	return k.Compare(l) > 0
}

// A Position is where a page starts.
type Position struct {
	After *Place // the page starts after it; nil: at the beginning

	// Seen is how far the page before got if it stopped among blocks
	// that overlap After, whose next entry is known once all are read;
	// otherwise nil.
	Seen    *Key   // the last block read
	Leads   []Ref  // blocks with the first entries after After,
	Horizon *Place // before this place; nil: all their entries
	Merges  int64  // number of the organization's merges at the page before; later ones may have merged read blocks
}

// Passed reports whether earlier pages have passed a block between
// these times that may match.
func (s *Search) Passed(block *Candidate) bool {
	return s.Start.Seen != nil && !s.Sooner(*s.Start.Seen, s.Key(block)) && s.Reaches(block.Min, block.Max)
}

// Resume has the search read passed blocks again that were merged
// since, besides those of the position.
func (s *Search) Resume(merged []Ref) {
	s.Start.Leads = slices.Clone(s.Start.Leads)
	for _, block := range merged {
		named := func(lead Ref) bool { return lead.ID == block.ID } // a cursor from before there were merges
		if !slices.ContainsFunc(s.Start.Leads, named) {
			s.Start.Leads = append(s.Start.Leads, block)
		}
	}
}

// Restart begins again after After, where the merges since are unknown.
func (s *Search) Restart() { s.Start = Position{After: s.Start.After} }

// maxLeads bounds the blocks of a Position: a cursor has to fit into a
// URL, and a page reads them again.
const maxLeads = 24

// Blocks are the blocks that a search reads.
type Blocks interface {
	// Next returns the next block in the order of Keys, the first after
	// Start.Seen; nil at the end. It may skip blocks without a match.
	Next() (*Candidate, error)
	// Read returns the entries of a block, in order; none where it is
	// gone. They are valid until the next Read.
	Read(block Ref) ([]Stored, error)
	// Spent reports whether the search has had its share.
	Spent() bool
}

// A Result is one page of a search.
type Result struct {
	Found      []Found
	Next       *Position // where the next page starts; nil: there is none
	Incomplete bool      // the share was used up before the page was full
	Read       int64     // bytes that were read for it
}

// Find finds a page. It reads blocks until the page is complete or its
// share is used up, and at least one, so every page makes progress.
func (s *Search) Find(blocks Blocks) (Result, error) {
	f := finding{search: s, blocks: blocks, page: NewPage(s), after: s.begin()}
	for _, lead := range s.Start.Leads {
		if !s.reads(lead.Project) {
			continue // outside this search's scope, or of a deleted project
		}
		if err := f.look(lead); err != nil {
			return Result{}, err
		}
	}
	for {
		c, err := blocks.Next()
		if err != nil {
			return Result{}, err
		}
		if c == nil || f.page.Complete(s.First(&c.Header)) {
			found, next := f.page.Result()
			return Result{Found: found, Next: next}, nil
		}
		if f.seen != nil && blocks.Spent() {
			return f.stop(s.First(&c.Header)), nil
		}
		key := s.Key(c)
		f.seen = &key
		if s.MayFind(c) {
			if err := f.look(c.Ref); err != nil {
				return Result{}, err
			}
		}
	}
}

type finding struct {
	search *Search
	blocks Blocks
	page   *Page
	after  *Place // matches come after it
	seen   *Key   // the last block
}

func (f *finding) look(block Ref) error {
	entries, err := f.blocks.Read(block)
	if err != nil {
		return err
	}
	f.page.Offer(entries, block)
	return nil
}

// stop ends the page before the blocks that begin at first.
func (f *finding) stop(first Instant) Result {
	if f.after != nil && !f.search.before(*f.after, f.search.Frontier(first)) {
		leads, horizon := f.page.leads()
		return Result{Incomplete: true, Next: &Position{After: f.after, Seen: f.seen, Leads: leads, Horizon: horizon}}
	}
	found, next, whole := f.page.ResultUpTo(first)
	return Result{Found: found, Next: next, Incomplete: !whole}
}

// A Page collects the best entries of a search while blocks come in the
// order of First.
type Page struct {
	search *Search
	best   worstFirst
	bytes  int // of the texts in best
}

// NewPage returns a page. It collects one entry more than fits, which
// shows whether there is a next page.
func NewPage(search *Search) *Page {
	return &Page{search: search, best: worstFirst{before: search.before}}
}

// Offer adds the entries of one block to the page.
func (p *Page) Offer(entries []Stored, block Ref) {
	for i := range entries {
		if entry := &entries[i]; p.improves(entry.Place) && p.search.Matches(entry) {
			p.take(Found{Stored: *entry, Project: block.Project, block: block})
		}
	}
}

// full reports whether the page holds all that fits and one entry more.
func (p *Page) full() bool {
	return len(p.best.list) > p.search.Limit || p.bytes > p.search.PageBytes() && len(p.best.list) > 1
}

// A Found is a found entry with its project.
type Found struct {
	Stored
	Project string
	block   Ref
}

// improves reports whether an entry at place belongs on the page.
func (p *Page) improves(place Place) bool {
	if horizon := p.search.Start.Horizon; horizon != nil && !p.search.before(place, *horizon) {
		return false
	}
	return !p.full() || p.search.before(place, p.best.list[0].Place)
}

// take copies the text, which shares a whole block's memory. It drops
// what no longer fits, except one more entry.
func (p *Page) take(found Found) {
	found.Text = bytes.Clone(found.Text)
	heap.Push(&p.best, found)
	p.bytes += len(found.Text)
	for p.fullWithout(p.best.list[0]) {
		p.bytes -= len(heap.Pop(&p.best).(Found).Text) //nolint:forcetypeassert // the heap holds nothing else
	}
}

// fullWithout reports whether the page is full without its last entry, worst.
func (p *Page) fullWithout(worst Found) bool {
	n, size := len(p.best.list)-1, p.bytes-len(worst.Text)
	return n > p.search.Limit || size > p.search.PageBytes() && n > 1
}

// Complete reports whether no block that begins at first or later can
// improve the page.
func (p *Page) Complete(first Instant) bool { return !p.improves(p.search.Frontier(first)) }

// Result returns the page in order and where the next one starts; nil:
// there is none.
func (p *Page) Result() (list []Found, next *Position) {
	list = p.sorted()
	if p.full() {
		list = list[:len(list)-1]
		return list, &Position{After: &list[len(list)-1].Place}
	}
	if horizon := p.search.Start.Horizon; horizon != nil {
		after := p.search.justBefore(*horizon)
		next = &Position{After: &after}
	}
	return list, next
}

// ResultUpTo returns the entries before any block that begins at first
// or later: the certain result of a search that stops there. The next
// page finds the rest. whole reports whether all of the page is certain.
func (p *Page) ResultUpTo(first Instant) (list []Found, next *Position, whole bool) {
	frontier := p.search.Frontier(first)
	list, next = p.Result()
	certain := slices.IndexFunc(list, func(f Found) bool { return !p.search.before(f.Place, frontier) })
	if certain < 0 && p.full() {
		return list, next, true
	}
	if certain >= 0 {
		list = list[:certain]
	}
	return list, &Position{After: &frontier}, false
}

// leads returns the blocks with the page's best entries, at most
// maxLeads, and the place from which other blocks may have entries; nil: none.
func (p *Page) leads() (blocks []Ref, horizon *Place) {
	list := p.sorted()
	horizon = p.search.Start.Horizon
	if p.full() {
		horizon = &list[len(list)-1].Place
		list = list[:len(list)-1]
	}
	for i := range list {
		if slices.Contains(blocks, list[i].block) {
			continue
		}
		if len(blocks) == maxLeads {
			return blocks, &list[i].Place
		}
		blocks = append(blocks, list[i].block)
	}
	return blocks, horizon
}

func (p *Page) sorted() []Found {
	list := p.best.list
	slices.SortFunc(list, func(a, b Found) int {
		if p.search.OldestFirst {
			return a.Compare(b.Place)
		}
		return b.Compare(a.Place)
	})
	return list
}

// worstFirst is a heap whose root is the entry to drop for a better one.
type worstFirst struct {
	list   []Found
	before func(p, q Place) bool
}

func (h *worstFirst) Len() int           { return len(h.list) }
func (h *worstFirst) Less(i, j int) bool { return h.before(h.list[j].Place, h.list[i].Place) }
func (h *worstFirst) Swap(i, j int)      { h.list[i], h.list[j] = h.list[j], h.list[i] }
func (h *worstFirst) Push(x any)         { h.list = append(h.list, x.(Found)) }
func (h *worstFirst) Pop() any {
	last := h.list[len(h.list)-1]
	h.list = h.list[:len(h.list)-1]
	return last
}
