package weir

import (
	"fmt"
	"math"
)

// accept settles a batch of which Weir has the valid entries.
func (s *sender) accept(b, sent *batch, p problem) {
	named := s.name(sent, p)
	unnamed := max(min(p.Rejected-len(p.Errors), sent.entries-named), 0)
	s.losses.add(Rejected, unnamed)
	s.accepted.Add(uint64(sent.entries - named - unnamed))
	s.losses.arrive(b.notice)
	s.backlog.settle(b)
}

// name tells which entries Weir rejects, and how many.
func (s *sender) name(sent *batch, p problem) (named int) {
	for _, e := range p.Errors {
		if e.Index != nil && *e.Index >= 0 && *e.Index < sent.entries && named < sent.entries { // the notice is no entry of the caller
			s.losses.addRejected(Drop{Reason: Rejected, Entries: 1, Index: *e.Index, Code: e.Code, Detail: e.Detail, Fix: e.Fix})
			named++
		}
	}
	return named
}

// repair leaves out of a refused batch what is at fault. It returns false if
// nothing is left that could be sent.
func (s *sender) repair(sent *batch, p problem) bool {
	faults := map[int]bool{}
	for _, e := range p.Errors {
		if e.Index != nil {
			faults[*e.Index] = true
		}
	}
	named := s.name(sent, p)
	if named > 0 && named < sent.entries && p.Rejected < sent.entries {
		if rest, err := sent.without(faults); err == nil {
			*sent = *rest
			return true
		}
	}
	if rest := sent.entries - named; rest > 0 {
		s.losses.addRejected(Drop{Reason: Rejected, Entries: rest, Index: -1, Code: p.Code, Detail: p.Detail})
	}
	sent.entries = 0
	return false
}

// deny stops sending for good, and says so once.
func (s *sender) deny(err error, b *batch) {
	err = fmt.Errorf("%w: nothing is sent any more, and what is logged is dropped: set WEIR_API_KEY to a key that is valid, and start again", err)
	s.denied.Store(&err)
	s.failing.Store(true) // no notice by itself
	s.queue.refuse(Unauthorized)
	s.queue.empty(Unauthorized)
	s.discard(b, Unauthorized)
	s.onError(err)
}

// discard settles a batch by dropping its entries. After a refusal of the key
// what is on disk stays there, for a process with another one.
func (s *sender) discard(b *batch, reason Reason) {
	if reason == Unauthorized && b.file != "" {
		s.backlog.leave(b)
		return
	}
	s.losses.add(reason, b.entries)
	if reason == Rejected && b.first == math.MaxUint64 { // a notice alone: so would be another
		s.losses.arrive(b.notice)
	} else {
		s.losses.unnotice(b.notice)
	}
	s.backlog.settle(b)
}
