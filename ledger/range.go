package ledger

import (
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A Range is the stretch of a partition that one transaction applied,
// or several that are joined.
type Range struct {
	Partition    int
	First, Next  int64 // half-open
	Records      int
	Charged      int       // requests
	Bytes        int64     // of all records
	Checksum     *int64    // sum over all records; nil: unknown
	ChargedBytes int64     // of whole requests, wherever their other parts are
	From, To     time.Time // earliest and latest acceptance, both inclusive
	BookedFrom   time.Time // when the first transaction booked
	Booked       time.Time // when the last did
}

// RangesOf returns the ranges that parts of requests come from, booked at
// one instant. Parts and requests are in the order of their records.
func RangesOf(parts, requests []Charge, booked time.Time) (ranges []Range) {
	at := map[int]int{} // index in ranges by partition
	for _, part := range parts {
		n, ok := at[part.Cause.Partition]
		if !ok {
			n = len(ranges)
			at[part.Cause.Partition], ranges = n, append(ranges, newRange(part.Cause, booked))
		}
		ranges[n].add(part)
	}
	for _, request := range requests {
		ranges[at[request.Cause.Partition]].charge(request)
	}
	return ranges
}

// ExtendToLate extends ranges to the periods in which their late charges
// count, as events say.
func ExtendToLate(ranges []Range, events []Event) {
	for _, event := range events {
		for i := range ranges {
			if event.Kind == BooksAdjusted && ranges[i].Partition == event.Cause.Partition {
				ranges[i].extend(event.Book.Period.Start)
			}
		}
	}
}

func newRange(cause Cause, booked time.Time) Range {
	return Range{
		Partition: cause.Partition, First: cause.Offset, Next: cause.Offset, From: cause.At, To: cause.At, BookedFrom: booked, Booked: booked, Checksum: new(int64),
	}
}

// add adds the next record. Records come in offset order.
func (r *Range) add(charge Charge) {
	r.Next = charge.Cause.Offset + 1
	r.Records++
	r.Bytes += charge.Bytes
	*r.Checksum += int64(charge.Checksum) //nolint:gosec // it wraps around
	r.extend(charge.Cause.At)
}

// charge adds a request that a record of the range completes.
func (r *Range) charge(request Charge) {
	r.Charged++
	r.ChargedBytes += request.Bytes
}

// extend extends the range's time to an instant.
func (r *Range) extend(at time.Time) {
	if at.Before(r.From) {
		r.From = at
	}
	if at.After(r.To) {
		r.To = at
	}
}

// Join adds another range of the partition.
func (r *Range) Join(other Range) {
	r.First, r.Next = min(r.First, other.First), max(r.Next, other.Next)
	r.Records, r.Charged = r.Records+other.Records, r.Charged+other.Charged
	r.Bytes, r.ChargedBytes = r.Bytes+other.Bytes, r.ChargedBytes+other.ChargedBytes
	*r.Checksum += *other.Checksum
	r.BookedFrom, r.Booked = calendar.Earlier(r.BookedFrom, other.BookedFrom), calendar.Later(r.Booked, other.Booked)
	r.extend(other.From)
	r.extend(other.To)
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
