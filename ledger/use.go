package ledger

import (
	"fmt"
	"time"
)

// UseAccepted is the outcome of what was accepted, and so charged.
// All others are of requests that were not.
const UseAccepted = "accepted"

// A Use is what became of requests of an organization that were alike, in one hour.
type Use struct {
	Organization string
	Hour         time.Time // UTC
	Project      string    // empty, like Key and Environment: of any, where too many were in use at once
	Key          string
	Environment  string
	Outcome      string
	Reason       string

	Requests  int64
	Entries   int64
	Bytes     int64
	Errors    int64 // of Entries: with an error payload; counted of accepted ones
	KeyInBody int64 // of Requests: with the key in the body, which is deprecated
}

// Use is what a charge adds to what its organization has used.
func (c Charge) Use() Use {
	return Use{
		Organization: c.Organization, Hour: c.Cause.At.UTC().Truncate(time.Hour), Project: c.Cause.Project, Key: c.Cause.Key, Environment: c.Environment,
		Outcome: UseAccepted, Requests: 1, Entries: int64(c.Entries), Bytes: c.Bytes, Errors: int64(c.Errors),
	}
}

// A Tally is what one process of ingest counted of an organization's requests.
// It counts once: those of a process have growing sequences.
type Tally struct {
	Organization string
	Process      string
	Sequence     int64
	At           time.Time
	Uses         []Use
}

// maxTallied bounds each number of a tally, so that no sum of
// them comes near the end of an int64.
const maxTallied = int64(1) << 48

// Validate refuses what cannot have been counted.
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

// Counted are the uses that a tally adds. The log itself counts what was
// accepted: of that only the deprecated keys are new.
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
