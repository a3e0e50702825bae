package ledger

import (
	"fmt"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A Reason is why a transfer was made.
type Reason uint8

// The reasons. Their numbers are stored.
const (
	Issued    Reason = 1 // the allowance of a period, or a grant
	Charged   Reason = 2 // accepted log entries
	Settled   Reason = 3 // earlier overage, now covered or the operator's
	Late      Reason = 4 // entries that came after their period had closed
	Prorated  Reason = 5 // of a larger plan for the rest of a period
	Lapsed    Reason = 6 // unused at its end
	TakenBack Reason = 7 // a grant that was voided
	Corrected Reason = 8 // an adjustment
)

var reasonNames = map[Reason]string{
	Issued: "issued", Charged: "charged", Settled: "settled", Late: "late", Prorated: "prorated", Lapsed: "expired", TakenBack: "voided",
	Corrected: "adjusted",
}

func (r Reason) String() string {
	if name, ok := reasonNames[r]; ok {
		return name
	}
	return fmt.Sprintf("reason(%d)", uint8(r))
}

// ParseReason returns the reason of a name.
func ParseReason(name string) (Reason, bool) {
	for reason, known := range reasonNames {
		if known == name {
			return reason, true
		}
	}
	return 0, false
}

// A Source is the log of a cause. Its numbers are stored.
type Source uint8

// The sources.
const (
	FromLogs      Source = 0
	FromOutcomes  Source = 2
	FromDecisions Source = 3 // the offset is the number of the organization's decision
)

// A Cause is the event behind a transfer. (Source, Partition, Offset)
// identifies it.
type Cause struct {
	Event     string // the event's id
	Batch     string // batch of log entries; empty: none
	Source    Source
	Partition int
	Offset    int64
	At        time.Time // when it happened; for logs their acceptance
	Project   string    // empty: no project
	Key       string    // id of the API key; empty: none
}

// BatchOfEvent returns the batch in the id of an event of the log.
func (c Cause) BatchOfEvent() string {
	batch, _, _ := strings.Cut(c.Event, "/")
	return batch
}

// A Transfer moves Amount bytes between two accounts of one
// organization and period. It never changes.
type Transfer struct {
	Organization string
	Period       calendar.Period
	From, To     Account
	Amount       int64 // bytes, at least 1
	Entries      int   // log entries; only on the first transfer of a charge
	Reason       Reason
	Cause        Cause
	Line         int       // numbers the transfers of one cause from 0
	Grant        string    // id of the grant; empty: none
	Of           time.Time // start of the corrected period; zero: none
}

// Effective is when a transfer counts: the time of its cause, or the
// period's start if that is outside, as for late settlements.
func (t Transfer) Effective() time.Time {
	if t.Period.Contains(t.Cause.At) {
		return t.Cause.At
	}
	return t.Period.Start
}
