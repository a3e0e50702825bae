package ingest

import (
	"bytes"
	"container/heap"
	"slices"
)

// A Page gathers the best entries of a search while blocks come
// in the order of First.
type Page struct {
	search *Search
	best   worstFirst
	bytes  int // of the texts in best
}

// NewPage starts a page. It gathers one entry more than fits,
// which reports whether there is a next page.
func NewPage(search *Search) *Page {
	return &Page{search: search, best: worstFirst{before: search.before}}
}

// Offer adds the entries of one block to the page; message
// unescapes an entry's message, for the words.
func (p *Page) Offer(entries []Stored, block Ref, message func(entry []byte) ([]byte, error)) error {
	for i := range entries {
		entry := &entries[i]
		if !p.improves(entry.Place) || !p.search.Wants(entry) {
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
		p.take(Found{Stored: *entry, Project: block.Project, block: block})
	}
	return nil
}

// full reports whether the page holds all that fits and one entry more.
func (p *Page) full() bool {
	return len(p.best.list) > p.search.Limit || p.bytes > p.search.maxBytes() && len(p.best.list) > 1
}

// Found is an entry that was found, and its project.
type Found struct {
	Stored
	Project string
	block   Ref
}

// improves reports whether an entry at place is better than one
// that the page has, or fits in besides.
func (p *Page) improves(place Place) bool {
	if horizon := p.search.Start.Horizon; horizon != nil && !p.search.before(place, *horizon) {
		return false
	}
	return !p.full() || p.search.before(place, p.best.list[0].Place)
}

// take copies the text, which shares the memory of a whole block. It drops what
// no longer fits, except one more entry.
func (p *Page) take(found Found) {
	found.Text = bytes.Clone(found.Text)
	heap.Push(&p.best, found)
	p.bytes += len(found.Text)
	for p.fullWithout(p.best.list[0]) {
		p.bytes -= len(heap.Pop(&p.best).(Found).Text) //nolint:forcetypeassert // the heap holds nothing else
	}
}

// fullWithout reports whether the page is full although worst,
// its last entry, goes.
func (p *Page) fullWithout(worst Found) bool {
	n, size := len(p.best.list)-1, p.bytes-len(worst.Text)
	return n > p.search.Limit || size > p.search.maxBytes() && n > 1
}

// Complete reports whether no block that begins at first or
// later can improve the page.
func (p *Page) Complete(first Instant) bool { return !p.improves(p.search.Frontier(first)) }

// Result is the page in order, and where the next one starts; nil: there is none.
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

// ResultUpTo is what the page holds before any block that begins at first or
// later: what a search that ends there has found for certain. The next page
// finds the rest again. The result is complete where this is all that fits.
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

// leads are the blocks with the best entries of the page, as many
// as a position can name, and the place from which on other blocks
// may have entries; nil: there are none.
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
