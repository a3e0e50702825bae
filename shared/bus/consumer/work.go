package consumer

import (
	"slices"

	"github.com/weirlog/weir/shared/bus"
)

// work is what one transaction does: it applies records, and
// moves the positions behind them.
type work struct {
	records  []bus.Record
	deferred []deferredRecord // are left to their lanes; in the order of their partitions

	lane  *laneKey // whose deferred records these are; nil: they come in the order of the log
	until int64    // how far the lane is read
}

func (w work) empty() bool { return len(w.records) == 0 && len(w.deferred) == 0 && w.lane == nil }

// divided are three parts of the work: records before low, before
// high, and the rest. Each defers what is before its last
// records, and the last one the remainder.
func (w work) divided(low, high int) []work {
	parts := []work{{records: w.records[:low]}, {records: w.records[low:high]}, {records: w.records[high:]}}
	rest := w.deferred
	for i := range parts {
		parts[i].lane = w.lane
		if last := i == len(parts)-1; last {
			parts[i].deferred, parts[i].until = rest, w.until
			break
		}
		parts[i].deferred, rest = split(rest, parts[i].ends())
	}
	return slices.DeleteFunc(parts, func(p work) bool { return len(p.records) == 0 && len(p.deferred) == 0 && p.until == 0 })
}

// split divides deferred records by the given offsets of their partitions.
func split(all []deferredRecord, ends map[int]int64) (before, rest []deferredRecord) {
	for _, p := range all {
		if p.offset < ends[p.partition] {
			before = append(before, p)
		} else {
			rest = append(rest, p)
		}
	}
	return before, rest
}

// ends returns how far each partition is read with this work.
func (w work) ends() map[int]int64 {
	ends := make(map[int]int64)
	for _, r := range w.records {
		ends[r.Partition] = max(ends[r.Partition], r.Offset+1)
	}
	for _, p := range w.deferred {
		ends[p.partition] = max(ends[p.partition], p.offset+1)
	}
	if w.lane != nil {
		ends[w.lane.partition] = max(ends[w.lane.partition], w.until)
	}
	return ends
}
