package ledger

import (
	"fmt"
	"time"
)

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
