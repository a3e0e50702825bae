package grouping

import "time"

// afterRetention is how many days a group outlives its last entries:
// an error that recurs within a month is the same to people.
const afterRetention = 30

// Expiry is the first day (UTC) on which an occurrence no longer keeps its
// group. It counts from acceptance, as an entry's own time may be anything.
func Expiry(accepted time.Time, retentionDays int) time.Time {
	year, month, day := accepted.UTC().Date()
	return time.Date(year, month, day+retentionDays+afterRetention+1, 0, 0, 0, 0, time.UTC)
}
