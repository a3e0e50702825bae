package ledger

import (
	"slices"
	"time"
)

// A Range is the stretch of one partition of the log that one transaction applied.
type Range struct {
	Partition    int
	First, Next  int64 // half-open
	Records      int
	Charged      int       // requests
	Bytes        int64     // of all records
	Checksum     *int64    // the sum of those of all records; nil: not known
	ChargedBytes int64     // of the requests, wherever their other parts are
	From, To     time.Time // the earliest and the latest acceptance of its records, both inclusive
	Booked       time.Time
}

// NewRange is the empty range that starts with the record that caused charge.
func NewRange(charge Charge, booked time.Time) Range {
	cause := charge.Cause
	return Range{
		Partition: cause.Partition, First: cause.Offset, Next: cause.Offset, From: cause.At, To: cause.At, Booked: booked, Checksum: new(int64),
	}
}

// Add takes one more record into the range. Records come in the
// order of their offsets.
func (r *Range) Add(charge Charge) {
	r.Next = charge.Cause.Offset + 1
	r.Records++
	r.Bytes += charge.Bytes
	*r.Checksum += int64(charge.Checksum) //nolint:gosec // it wraps around
	r.Reach(charge.Cause.At)
}

// Charge notes a request that a record of the range completes.
func (r *Range) Charge(request Charge) {
	r.Charged++
	r.ChargedBytes += request.Bytes
}

// Reach takes an instant at which something counts into the range: what came
// late counts from the beginning of a later period.
func (r *Range) Reach(at time.Time) {
	if at.Before(r.From) {
		r.From = at
	}
	if at.After(r.To) {
		r.To = at
	}
}

// Join takes in another range of the partition that the same transaction, or
// one that counts as the same, applied.
func (r *Range) Join(other Range) {
	r.First, r.Next = min(r.First, other.First), max(r.Next, other.Next)
	r.Records, r.Charged = r.Records+other.Records, r.Charged+other.Charged
	r.Bytes, r.ChargedBytes = r.Bytes+other.Bytes, r.ChargedBytes+other.ChargedBytes
	*r.Checksum += *other.Checksum
	r.Reach(other.From)
	r.Reach(other.To)
}

// JoinRanges joins ranges with others, partition by partition.
func JoinRanges(ranges, others []Range) []Range {
	for _, other := range others {
		at := slices.IndexFunc(ranges, func(r Range) bool { return r.Partition == other.Partition })
		if at < 0 {
			ranges = append(ranges, other)
			continue
		}
		ranges[at].Join(other)
	}
	return ranges
}
