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

// An Account is one side of a transfer in an organization's books of one period.
type Account uint8

// The accounts. Each transfer moves bytes between two, so they sum to
// zero. Their numbers are stored.
const (
	Issuer    Account = iota // source of allowances and overdrafts: never positive
	Allowance                // what is left of the plan's allowance for the period
	Consumed                 // used and covered by an allowance or a grant
	Overage                  // used and uncovered, as the plan accepts or an adjustment charges
	Credit                   // added to the grants; negative: it used earlier grants
	Expired                  // granted and expired
	Voided                   // granted and taken back
	Overshoot                // accepted beyond what the plan allows: the operator's, never owed by the customer
	accounts
)

var accountNames = [accounts]string{"issuer", "grant", "consumed", "overage", "credit", "expired", "voided", "overshoot"}

func (a Account) String() string {
	if a >= accounts {
		return fmt.Sprintf("account(%d)", uint8(a))
	}
	return accountNames[a]
}

// Balances are the bytes that each account holds, indexed by Account.
type Balances [accounts]int64

// Sum is zero in sound books.
func (b Balances) Sum() int64 {
	var sum int64
	for _, amount := range b {
		sum += amount
	}
	return sum
}

// Apply books one transfer.
func (b *Balances) Apply(t Transfer) {
	b[t.From] -= t.Amount
	b[t.To] += t.Amount
}

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

// UseAccepted is the outcome of accepted requests, which are charged.
// Others are not.
const UseAccepted = "accepted"

// A Use sums an organization's requests of one kind and hour.
type Use struct {
	Organization string
	Hour         time.Time // UTC
	Project      string    // empty, like Key and Environment, where there were too many
	Key          string
	Environment  string
	Outcome      string
	Reason       string

	Requests  int64
	Entries   int64
	Bytes     int64
	Errors    int64 // accepted Entries with an error payload
	KeyInBody int64 // Requests with the key in the body, which is deprecated
}

// Use returns what a charge adds to usage.
func (c Charge) Use() Use {
	return Use{
		Organization: c.Organization, Hour: c.Cause.At.UTC().Truncate(time.Hour), Project: c.Cause.Project, Key: c.Cause.Key, Environment: c.Environment,
		Outcome: UseAccepted, Requests: 1, Entries: int64(c.Entries), Bytes: c.Bytes, Errors: int64(c.Errors),
	}
}

// A Tally is what one process of ingest counted of an organization's
// requests. It counts once: sequences of a process ascend.
type Tally struct {
	Organization string
	Process      string
	Sequence     int64
	At           time.Time
	Uses         []Use
}

// maxTallied bounds each number of a tally, so that sums stay far below
// the limit of int64.
const maxTallied = int64(1) << 48

// Validate refuses an impossible tally.
func (t Tally) Validate() error {
	if t.Organization == "" || t.Process == "" || t.Sequence < 1 {
		return fmt.Errorf("cannot count requests of organization %q by process %q, sequence %d", t.Organization, t.Process, t.Sequence)
	}
	if t.At.Year() < FirstYear || t.At.Year() > LastYear {
		return fmt.Errorf("cannot count requests of organization %q: they ended at %s", t.Organization, t.At)
	}
	for _, use := range t.Uses {
		for _, n := range []int64{use.Requests, use.Entries, use.Bytes, use.KeyInBody} {
			if n < 0 || n > maxTallied {
				return fmt.Errorf("cannot count requests of organization %q: %+v", t.Organization, use)
			}
		}
	}
	return nil
}

// Counted returns the uses that a tally adds. Accepted requests are
// counted by the log; only their deprecated keys are new.
func (t Tally) Counted() []Use {
	var uses []Use
	for _, use := range t.Uses {
		if use.Outcome == UseAccepted {
			use.Requests, use.Entries, use.Bytes = 0, 0, 0
			if use.KeyInBody == 0 {
				continue
			}
		}
		uses = append(uses, use)
	}
	return uses
}
