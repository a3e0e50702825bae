package lanes

import (
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
)

// Request asks for records of a backlog.
type Request struct {
	Key
	Next, Last int64
	spans      []Span
	Limit      Amount
}

// Batch is what was read: the lane's records from its position to Next.
type Batch struct {
	Request
	Records []bus.Record
	Taken   Amount
	Next    int64
	Err     error
}

// Skip moves Next to the next span.
func (s *Batch) Skip() {
	for len(s.spans) > 0 && s.spans[0].Last < s.Next {
		s.spans = s.spans[1:]
	}
	if len(s.spans) > 0 {
		s.Next = max(s.Next, s.spans[0].First)
	}
}

// Choose takes the lane's records until there are enough, and reports
// whether there are.
func (s *Batch) Choose(p batch.Piece, lanes Config) (full bool) {
	for _, r := range p.Records {
		if r.Offset > s.Last {
			break
		}
		if lanes.of(r) != s.Lane {
			continue
		}
		size := lanes.size(r)
		if len(s.Records) > 0 && !s.Taken.plus(size).within(s.Limit) {
			s.Next = r.Offset
			return true
		}
		s.Records, s.Taken = append(s.Records, r.Detached()), s.Taken.plus(size) // a copy, which does not keep its whole batch in memory
	}
	s.Next = min(p.Next, s.Last+1)
	return false
}

// Cut drops what exceeds a limit that was lowered after the read.
func (s *Batch) Cut(limit Amount, lanes Config) {
	taken := Amount{}
	for i, r := range s.Records {
		size := lanes.size(r)
		if i > 0 && !taken.plus(size).within(limit) {
			s.Records, s.Next = s.Records[:i], r.Offset
			break
		}
		taken = taken.plus(size)
	}
	s.Taken, s.Limit = taken, limit
}
