package ingest

import "time"

// An Acceptance is a request that passed everything and is about to be published.
type Acceptance struct {
	Batch         string // its UUID
	Organization  string
	Project       string
	Environment   string // of the key
	Key           string // its id
	At            time.Time
	RetentionDays int    // for which its entries are kept
	Idempotency   string // hash of project and idempotency key; empty without one
	Digest        string // of the body; set together with Idempotency
	Traceparent   string // of the request where it is traced, else as the client sent it, if it is well formed
	Bytes         int64  // of all parts
	Parts         []Part
}

// A DeliveryStatus is whether a whole request is in the log.
type DeliveryStatus uint8

// The delivery statuses.
const (
	Absent    DeliveryStatus = iota // not whole and never will be: it has no effect
	Published                       // all parts are acknowledged
	Uncertain                       // it is not known, or not where
)

// An Outcome is the result of publishing a request.
type Outcome struct {
	Status    DeliveryStatus
	Partition int   // where a published request is, and
	Offset    int64 // where its last part is
}

// WellFormedTraceparent reports whether text is a version 00
// traceparent of W3C Trace Context.
func WellFormedTraceparent(text string) bool {
	if len(text) != 55 || text[:3] != "00-" || text[35] != '-' || text[52] != '-' {
		return false
	}
	nonZero := func(digits string) bool {
		set := false
		for _, c := range []byte(digits) {
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
				return false
			}
			set = set || c != '0'
		}
		return set
	}
	return nonZero(text[3:35]) && nonZero(text[36:52]) && nonZero("1"+text[53:])
}
