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

// A Candidate is a block that a search has not read.
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
	// Message unescapes the message of an entry.
	Message(entry []byte) ([]byte, error)
	// Spent reports whether the search has had its share.
	Spent() bool
}

// A Result is one page of a search.
type Result struct {
	Found      []Found
	Next       *Position // where the next page starts; nil: there is none
	Incomplete bool      // the share was used up before the page was full
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
