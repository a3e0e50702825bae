package ingest

import (
	"cmp"
	"math"
)

// A Search selects entries, in an order. Its zero value selects all, newest first.
type Search struct {
	Project     string          // empty: all projects of the organization
	Hidden      map[string]bool // except these
	From, To    *Instant        // event times from From on, before To; nil: no bound
	Levels      SeveritySet
	Environment string
	Words       Words
	OldestFirst bool
	Start       Position
	Limit       int // most entries of a page, at least 1
	MaxBytes    int // text of a page, besides the entry that exceeds it; 0: MaxPageBytes
}

// MaxPageBytes is the text at which a page ends, whatever its limit.
const MaxPageBytes = 8 << 20

func (s *Search) maxBytes() int { return cmp.Or(s.MaxBytes, MaxPageBytes) }

// Matches reports whether an entry matches, apart from its words.
func (s *Search) Matches(entry *Stored) bool {
	switch {
	case s.From != nil && entry.Time.Compare(*s.From) < 0, s.To != nil && entry.Time.Compare(*s.To) >= 0:
		return false
	case !s.Levels.Has(entry.Level), s.Environment != "" && s.Environment != entry.Environment:
		return false
	}
	return s.Start.After == nil || s.before(*s.Start.After, entry.Place)
}

// reads reports whether the search covers a project.
func (s *Search) reads(project string) bool {
	return (s.Project == "" || s.Project == project) && !s.Hidden[project]
}

// MayFind reports whether a block may hold a match.
func (s *Search) MayFind(block *Candidate) bool {
	header := &block.Header
	if !s.reads(block.Project) || !s.Reaches(header.Min, header.Max) {
		return false
	}
	return (s.Levels == 0 || s.Levels&header.Levels != 0) && header.Environments.MayHold(s.Environment) && header.Words.MayHold(s.Words)
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
