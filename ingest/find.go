package ingest

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// A Ref names a block in its store.
type Ref struct {
	Project       string
	ReceivedAt    time.Time
	RetentionDays int
	ID            [16]byte
}

// A Candidate is a block that a search has not looked into.
type Candidate struct {
	Header
	Ref
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

// Key is where the search comes to a block.
func (s *Search) Key(block *Candidate) Key { return Key{First: s.First(&block.Header), ID: block.ID} }

// Sooner reports whether the search comes to the block at k before that at l.
func (s *Search) Sooner(k, l Key) bool {
	if s.OldestFirst {
		return k.Compare(l) < 0
	}
	return k.Compare(l) > 0
}

// A Position is where a page starts.
type Position struct {
	After *Place // what comes behind it is wanted; nil: all

	// Seen is how far the page before got, where it stopped among
	// blocks that overlap After, of which the next entry is known
	// only once all are read. Else it is nil.
	Seen    *Key   // the last of the blocks that were looked at
	Leads   []Ref  // those of them that hold the best of what comes behind After,
	Horizon *Place // before this place; nil: all that they hold
	Merges  int64  // how many merges of the organization's blocks the page before saw: what later ones wrote may hold what was looked at
}

// Passed reports whether the pages before have passed a block that lies between
// these times, which may hold what is wanted.
func (s *Search) Passed(block *Candidate) bool {
	return s.Start.Seen != nil && !s.Sooner(*s.Start.Seen, s.Key(block)) && s.Reaches(block.Min, block.Max)
}

// Resume has the search look again into blocks that it has passed, and that
// were merged since, beside those that the position names.
func (s *Search) Resume(merged []Ref) {
	s.Start.Leads = slices.Clone(s.Start.Leads)
	for _, block := range merged {
		named := func(lead Ref) bool { return lead.ID == block.ID } // by a cursor of a version that knows of no merges
		if !slices.ContainsFunc(s.Start.Leads, named) {
			s.Start.Leads = append(s.Start.Leads, block)
		}
	}
}

// Restart has the search begin behind After again, for it can't be found out
// what became of the blocks that it has passed.
func (s *Search) Restart() { s.Start = Position{After: s.Start.After} }

// maxLeads is how many blocks a Position names: a cursor has to fit
// into a URL, and a page reads them again.
const maxLeads = 24

// Blocks are what a search goes through.
type Blocks interface {
	// Next is the next block in the order of Keys, the first after Start.Seen;
	// nil at the end. It may leave out blocks without a match.
	Next() (*Candidate, error)
	// Read returns the entries of a block, in order; none where it is
	// gone. They are valid until the next Read.
	Read(block Ref) ([]Stored, error)
	// Message unescapes the message of an entry.
	Message(entry []byte) ([]byte, error)
	// Spent reports whether the search has had its share.
	Spent() bool
}

// A Result is one page of a search.
type Result struct {
	Found      []Found
	Next       *Position // where the next page starts; nil: there is none
	Incomplete bool      // the search had its share before the page was full
}

// Find finds a page. It reads blocks until the page is complete or its share is
// used up, at least one, so every page makes progress.
func (s *Search) Find(blocks Blocks) (Result, error) {
	f := finding{search: s, blocks: blocks, page: NewPage(s), after: s.begin()}
	for _, lead := range s.Start.Leads {
		if !s.reads(lead.Project) {
			continue // the page before had a wider scope, or its project was deleted since
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
	after  *Place // nothing before it is wanted
	seen   *Key   // the last block
}

func (f *finding) look(block Ref) error {
	entries, err := f.blocks.Read(block)
	if err != nil {
		return err
	}
	return f.page.Offer(entries, block, f.blocks.Message)
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
