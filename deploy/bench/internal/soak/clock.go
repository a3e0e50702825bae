package soak

import (
	"sync/atomic"
	"time"
)

// A clock runs as the machine's does, and skips idle time.
type clock struct{ skipped atomic.Int64 }

// Now is Weir's time.
func (c *clock) Now() time.Time {
	return time.Now().Add(time.Duration(c.skipped.Load()))
}

func (c *clock) skip(span time.Duration) { c.skipped.Add(int64(span)) }
