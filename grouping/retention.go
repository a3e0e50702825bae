package grouping

import "time"

// afterRetention is for how many days a group outlives the entries that were last seen of it: an error that comes back within a month is
// the one that people know.
const afterRetention = 30

// Expiry is the first day (UTC) on which an occurrence holds its group no more, where its entry was accepted at a time and is kept for so many
// days. It follows from when the entry was accepted: what it says of its own time may be anything.
func Expiry(accepted time.Time, retentionDays int) time.Time {
	year, month, day := accepted.UTC().Date()
	return time.Date(year, month, day+retentionDays+afterRetention+1, 0, 0, 0, 0, time.UTC)
}
