package ingest

import (
	"bytes"
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// A Search says which entries are wanted, and in which order. Its zero value wants all, newest first.
type Search struct {
	Project     string   // empty: all projects of the organization
	From, To    *Instant // event times from From on, before To; nil: no bound
	Levels      LevelSet
	Environment string
	Words       Words
	OldestFirst bool
	After       *Place // where the page before ended; nil: the first page
	Limit       int    // most entries of a page, at least 1
	MaxBytes    int    // of a page's texts, beside the entry that goes past it; 0: MaxPageBytes
}

// MaxPageBytes is how much text a page holds before it ends, whatever its limit.
const MaxPageBytes = 8 << 20

func (s *Search) maxBytes() int { return cmp.Or(s.MaxBytes, MaxPageBytes) }

// Wants tells whether the search wants an entry, apart from its words.
func (s *Search) Wants(entry *Stored) bool {
	switch {
	case s.From != nil && entry.Time.Compare(*s.From) < 0, s.To != nil && entry.Time.Compare(*s.To) >= 0:
		return false
	case !s.Levels.Has(entry.Level), s.Environment != "" && s.Environment != entry.Environment:
		return false
	}
	return s.After == nil || s.before(*s.After, entry.Place)
}

// MayFind tells whether a block can hold an entry that is wanted.
func (s *Search) MayFind(header *Header) bool {
	switch {
	case s.From != nil && header.Max.Compare(*s.From) < 0, s.To != nil && header.Min.Compare(*s.To) >= 0:
		return false
	case s.After != nil && s.OldestFirst && header.Max.Compare(s.After.Time) < 0:
		return false
	case s.After != nil && !s.OldestFirst && header.Min.Compare(s.After.Time) > 0:
		return false
	}
	return (s.Levels == 0 || s.Levels&header.Levels != 0) && header.Words.MayHold(s.Words)
}

// before tells whether p comes before q in the search's order.
func (s *Search) before(p, q Place) bool {
	if s.OldestFirst {
		return p.Compare(q) < 0
	}
	return p.Compare(q) > 0
}

// First is where the best entry of a block can stand at most. Blocks are taken in the order of this time.
func (s *Search) First(header *Header) Instant {
	if s.OldestFirst {
		return header.Min
	}
	return header.Max
}

// Frontier is the place just before everything at time: a page that ends there goes on with all of it.
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

// MayStop tells whether a page may end before the blocks that begin at first, so that the next one gets further. Blocks
// that reach over the place where the page began are always looked at: else a search could stand still.
func (s *Search) MayStop(first Instant) bool {
	if s.After == nil {
		return true
	}
	if s.OldestFirst {
		return first.Compare(s.After.Time) > 0
	}
	return first.Compare(s.After.Time) < 0
}

// A Page gathers the best entries of a search while blocks come in the order of First.
type Page struct {
	search *Search
	best   worstFirst
	bytes  int // of the texts in best
}

// NewPage starts a page. It gathers one entry more than fits, which tells whether there is a next page.
func NewPage(search *Search) *Page {
	return &Page{search: search, best: worstFirst{before: search.before}}
}

// Offer gives the page the entries of one block; message unescapes the message of an entry, for the words.
func (p *Page) Offer(entries []Stored, project string, message func(entry []byte) ([]byte, error)) error {
	for i := range entries {
		entry := &entries[i]
		if !p.search.Wants(entry) || !p.improves(entry.Place) {
			continue
		}
		if len(p.search.Words) > 0 {
			text, err := message(entry.Text)
			if err != nil {
				return err
			}
			if !p.search.Words.In(text) {
				continue
			}
		}
		p.take(Found{Stored: *entry, Project: project})
	}
	return nil
}

// full tells whether the page holds all that fits and one entry more.
func (p *Page) full() bool {
	return len(p.best.list) > p.search.Limit || p.bytes > p.search.maxBytes() && len(p.best.list) > 1
}

// Found is an entry that was found, and its project.
type Found struct {
	Stored
	Project string
}

func (p *Page) improves(place Place) bool {
	return !p.full() || p.search.before(place, p.best.list[0].Place)
}

// take copies the text: it shares the memory of a whole block. What no longer fits goes, but for the one entry more.
func (p *Page) take(found Found) {
	found.Text = bytes.Clone(found.Text)
	heap.Push(&p.best, found)
	p.bytes += len(found.Text)
	for p.fullWithout(p.best.list[0]) {
		p.bytes -= len(heap.Pop(&p.best).(Found).Text) //nolint:forcetypeassert // the heap holds nothing else
	}
}

// fullWithout tells whether the page is full although worst, its last entry, goes.
func (p *Page) fullWithout(worst Found) bool {
	n, size := len(p.best.list)-1, p.bytes-len(worst.Text)
	return n > p.search.Limit || size > p.search.maxBytes() && n > 1
}

// Complete tells whether no block that begins at first or later can improve the page.
func (p *Page) Complete(first Instant) bool {
	return p.full() && !p.search.before(p.search.Frontier(first), p.best.list[0].Place)
}

// Result is the page in order, and where the next one starts; nil: there is none.
func (p *Page) Result() (list []Found, next *Place) {
	list = p.sorted()
	if !p.full() {
		return list, nil
	}
	list = list[:len(list)-1]
	return list, &list[len(list)-1].Place
}

// ResultUpTo is what the page holds that no block beginning at first or later can come before: what a search that ends
// there has found for certain.
func (p *Page) ResultUpTo(first Instant) (list []Found, next *Place) {
	frontier := p.search.Frontier(first)
	list, next = p.Result()
	certain := slices.IndexFunc(list, func(f Found) bool { return !p.search.before(f.Place, frontier) })
	if certain >= 0 {
		return list[:certain], &frontier
	}
	if next == nil {
		next = &frontier
	}
	return list, next
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

// worstFirst is a heap whose root is the entry that goes when a better one comes.
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
