package balances

import (
	"time"

	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/ledger/internal/watermark"
	"github.com/weirlog/weir/shared/contract"
)

const (
	endMaxAge  = time.Second // of the log's end, where it only shows lag
	endTimeout = time.Second // for the brokers to answer
)

// A Booking is how far the log is booked.
type Booking struct {
	Verified contract.Positions // ranges below are checked
	Known    bool               // false: no broker answered, the rest is unknown
	Behind   int64              // records in the log that are not booked
	Lag      time.Duration      // upper bound of their age
}

// bookingOf returns how far the log is booked. end is the log's end
// before the snapshot, if known.
func bookingOf(standing postgres.Standing, end watermark.End, known bool, now time.Time) *Booking {
	b := &Booking{Verified: standing.Verified, Known: known}
	if !known {
		return b
	}
	for partition, next := range end.Next {
		more := next - standing.Applied[partition]
		if more <= 0 {
			continue
		}
		accepted, found := standing.Accepted[partition]
		b.Behind, b.Known = b.Behind+more, b.Known && found
		b.Lag = max(b.Lag, now.Sub(accepted))
	}
	if !b.Known {
		b.Lag = 0 // nothing is booked of a partition
	}
	return b
}
