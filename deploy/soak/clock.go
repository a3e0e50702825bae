package soak

import (
	"sync/atomic"
	"time"
)

// A clock goes on as the machine's does, and skips the time in which nothing happens.
type clock struct{ skipped atomic.Int64 }

// Now is the time by which Weir lives.
func (c *clock) Now() time.Time {
	return time.Now().Add(time.Duration(c.skipped.Load()))
}

func (c *clock) skip(span time.Duration) { c.skipped.Add(int64(span)) }
