package status

import (
	"maps"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

// Goals are the ends that partitions had when they were assigned. The
// consumer is ready once all is applied up to them, lanes included.
type Goals struct {
	ends map[int]int64 // of partitions that have not reached them; unknown: not fetched yet
	read map[int]int64 // how far partitions are read
}

const unknown = -1

// NewGoals returns no goals.
func NewGoals() Goals { return Goals{ends: make(map[int]int64), read: make(map[int]int64)} }

// Add adds a partition.
func (g Goals) Add(partition int) { g.ends[partition] = unknown }

// Open reports whether a partition has not reached its goal.
func (g Goals) Open() bool { return len(g.ends) > 0 }

// Seen notes where the log of a partition ends.
func (g Goals) Seen(partition int, end int64) {
	if goal, open := g.ends[partition]; open && goal == unknown {
		g.ends[partition] = end
	}
}

// Reached notes how far partitions are read.
func (g Goals) Reached(until map[int]int64) {
	if !g.Open() {
		return
	}
	for p, next := range until {
		g.read[p] = max(g.read[p], next)
	}
}

// Met removes reached goals, and reports whether none is left.
func (g Goals) Met(behind lanes.Backlogs) bool {
	applied := maps.Clone(g.read)
	behind.Lower(applied)
	for p, goal := range g.ends {
		if next, read := applied[p]; read && goal != unknown && next >= goal {
			delete(g.ends, p)
		}
	}
	return !g.Open()
}
