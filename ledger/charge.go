package ledger

import "fmt"

// MaxGrant and MaxCharge keep sums far from the limits of int64.
const (
	// MaxGrant and MaxCharge keep sums far below the limits of int64.
	MaxGrant  = int64(1) << 56
	MaxCharge = int64(1) << 40
)

// FirstYear and LastYear bound all times. One outside is a defect.
const (
	FirstYear = 2020
	LastYear  = 2200
)

// A Charge is the cost of one LogsAccepted in the period of its
// acceptance, however late it is booked.
type Charge struct {
	Organization string
	Bytes        int64
	Entries      int
	Errors       int
	Environment  string
	Checksum     uint64 // of its record
	Cause        Cause
}

// Validate refuses a charge that no accepted request can cause.
func (c Charge) Validate() error {
	switch {
	case c.Organization == "":
		return fmt.Errorf("cannot charge event %q: it has no organization", c.Cause.Event)
	case c.Bytes < 0 || c.Bytes > MaxCharge:
		return fmt.Errorf("cannot charge event %q: %d bytes is outside 0..%d", c.Cause.Event, c.Bytes, MaxCharge)
	case c.Cause.At.Year() < FirstYear || c.Cause.At.Year() > LastYear:
		return fmt.Errorf("cannot charge event %q: accepted at %s", c.Cause.Event, c.Cause.At)
	}
	return nil
}
