package lanes

import (
	"slices"

	"github.com/weirlog/weir/shared/bus"
)

// Work is what one transaction does: it applies records, and moves the
// positions after them.
type Work struct {
	Records  []bus.Record
	Deferred []Deferred // for their lanes; in the order of their partitions

	Lane  *Key  // the lane of deferred records; nil: they are in the order of the log
	Until int64 // how far the lane is read
}

// Empty reports whether there is nothing to do.
func (w Work) Empty() bool { return len(w.Records) == 0 && len(w.Deferred) == 0 && w.Lane == nil }

// Divided returns three parts of the work: records before low, before
// high, and the rest. Each defers what is before its last records, and
// the last one the remainder.
func (w Work) Divided(low, high int) []Work {
	parts := []Work{{Records: w.Records[:low]}, {Records: w.Records[low:high]}, {Records: w.Records[high:]}}
	rest := w.Deferred
	for i := range parts {
		parts[i].Lane = w.Lane
		if last := i == len(parts)-1; last {
			parts[i].Deferred, parts[i].Until = rest, w.Until
			break
		}
		parts[i].Deferred, rest = split(rest, parts[i].Ends())
	}
	return slices.DeleteFunc(parts, func(p Work) bool { return len(p.Records) == 0 && len(p.Deferred) == 0 && p.Until == 0 })
}

// split divides deferred records by the given offsets of their partitions.
func split(all []Deferred, ends map[int]int64) (before, rest []Deferred) {
	for _, p := range all {
		if p.Mark.Offset < ends[p.Partition] {
			before = append(before, p)
		} else {
			rest = append(rest, p)
		}
	}
	return before, rest
}

// Marks returns the last record of each partition, deferred or not, of
// work in the order of the log.
func (w Work) Marks() map[int]bus.Mark {
	last := make(map[int]int)
	for i, r := range w.Records {
		last[r.Partition] = i
	}
	marks := make(map[int]bus.Mark, len(last))
	for p, i := range last {
		marks[p] = w.Records[i].Mark()
	}
	for _, d := range w.Deferred {
		if at, known := marks[d.Partition]; !known || d.Mark.Offset > at.Offset {
			marks[d.Partition] = d.Mark
		}
	}
	return marks
}

// Ends returns how far each partition is read with this work.
func (w Work) Ends() map[int]int64 {
	ends := make(map[int]int64)
	for _, r := range w.Records {
		ends[r.Partition] = max(ends[r.Partition], r.Offset+1)
	}
	for _, p := range w.Deferred {
		ends[p.Partition] = max(ends[p.Partition], p.Mark.Offset+1)
	}
	if w.Lane != nil {
		ends[w.Lane.Partition] = max(ends[w.Lane.Partition], w.Until)
	}
	return ends
}
