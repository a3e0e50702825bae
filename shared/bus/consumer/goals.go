package consumer

import (
	"maps"

	"github.com/weirlog/weir/shared/bus/consumer/internal/lanes"
)

// goals are the ends that partitions had when they were assigned. Once all is
// applied that far, lanes included, the consumer is ready.
type goals struct {
	ends map[int]int64 // of partitions that are not as far; unknown: not fetched yet
	read map[int]int64 // how far partitions are read
}

const unknown = -1

func newGoals() goals { return goals{ends: make(map[int]int64), read: make(map[int]int64)} }

func (g goals) add(partition int) { g.ends[partition] = unknown }

// open reports whether a partition is not as far yet.
func (g goals) open() bool { return len(g.ends) > 0 }

// seen notes where the log of a partition ends.
func (g goals) seen(partition int, end int64) {
	if goal, open := g.ends[partition]; open && goal == unknown {
		g.ends[partition] = end
	}
}

// reached notes how far partitions are read.
func (g goals) reached(until map[int]int64) {
	if !g.open() {
		return
	}
	for p, next := range until {
		g.read[p] = max(g.read[p], next)
	}
}

// met closes the goals of partitions that are as far, and
// reports whether none is left.
func (g goals) met(behind lanes.Backlogs) bool {
	applied := maps.Clone(g.read)
	behind.Lower(applied)
	for p, goal := range g.ends {
		if next, read := applied[p]; read && goal != unknown && next >= goal {
			delete(g.ends, p)
		}
	}
	return !g.open()
}
