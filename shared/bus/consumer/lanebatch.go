package consumer

import (
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/batch"
)

// laneRead is what is to be read of a backlog.
type laneRead struct {
	laneKey
	next, last int64
	spans      []span
	limit      amount
}

// laneBatch is what was read of a backlog: its lane's records
// from where it stood to next.
type laneBatch struct {
	laneRead
	records []bus.Record
	taken   amount
	next    int64
	err     error
}

// skip goes to where the next records are.
func (s *laneBatch) skip() {
	for len(s.spans) > 0 && s.spans[0].last < s.next {
		s.spans = s.spans[1:]
	}
	if len(s.spans) > 0 {
		s.next = max(s.next, s.spans[0].first)
	}
}

// choose takes the records of the lane until there are enough,
// and reports whether there are.
func (s *laneBatch) choose(p batch.Piece, lanes Lanes) (full bool) {
	for _, r := range p.Records {
		if r.Offset > s.last {
			break
		}
		if lanes.of(r) != s.lane {
			continue
		}
		size := lanes.size(r)
		if len(s.records) > 0 && !s.taken.plus(size).within(s.limit) {
			s.next = r.Offset
			return true
		}
		s.records, s.taken = append(s.records, r.Detached()), s.taken.plus(size) // or it would keep its whole batch in memory
	}
	s.next = min(p.Next, s.last+1)
	return false
}

// cut drops what exceeds a limit that was lowered after the stretch was read.
func (s *laneBatch) cut(limit amount, lanes Lanes) {
	taken := amount{}
	for i, r := range s.records {
		size := lanes.size(r)
		if i > 0 && !taken.plus(size).within(limit) {
			s.records, s.next = s.records[:i], r.Offset
			break
		}
		taken = taken.plus(size)
	}
	s.taken, s.limit = taken, limit
}
