package wallclock

import (
	"time"
	"unsafe"
)

// Set returns now, a reading of the machine's clock, as it were with the
// wall clock set by so many seconds: the monotonic part stays. Package
// time can't make one, so this changes the seconds that a Time holds.
func Set(now time.Time, by time.Duration) time.Time {
	set := now
	*(*uint64)(unsafe.Pointer(&set)) += uint64(by/time.Second) << 30
	if set.Sub(now) != 0 || set.Round(0).Sub(now.Round(0)) != by {
		panic("the reading has no monotonic part, or package time holds it otherwise than it did")
	}
	return set
}
