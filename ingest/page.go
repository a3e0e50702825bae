package ingest

import (
	"bytes"
	"container/heap"
	"slices"
)

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

// Offer adds the entries of one block to the page; message
// unescapes an entry's message, for the words.
func (p *Page) Offer(entries []Stored, block Ref, message func(entry []byte) ([]byte, error)) error {
	for i := range entries {
		entry := &entries[i]
		if !p.improves(entry.Place) || !p.search.Matches(entry) {
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
	return n > p.search.Limit || size > p.search.maxBytes() && n > 1
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
