package balances

import (
	"time"

	"github.com/weirlog/weir/ledger/internal/horizon"
	"github.com/weirlog/weir/ledger/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
)

const (
	endAge    = time.Second // of the log's end, for who only shows the lag
	endWithin = time.Second // the brokers answer, or these do without
)

// A Booking is how far the log is booked.
type Booking struct {
	Verified contract.Positions // the ranges before them are checked
	Known    bool               // false: the brokers did not answer, and what follows is not known
	Behind   int64              // records that are in the log, and not booked
	Lag      time.Duration      // the first of these was accepted no longer ago
}

// bookingOf is how far the log is booked. end is where it ended before the
// snapshot; known is false where nobody knows.
func bookingOf(standing postgres.Standing, end horizon.End, known bool, now time.Time) *Booking {
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
