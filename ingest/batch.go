package ingest

import "time"

// A Batch is the content of one body. It shares the body's memory and the
// Parser's, and is valid until either is reused.
type Batch struct {
	Entries       int    // entries in the body
	Lines         []byte // the valid entries, each as compact JSON and a newline
	Accepted      []Line // one per valid entry that is kept, in the body's order
	LeftOut       int    // valid entries that rules of the project left out of Accepted
	Rejected      int    // entries with at least one fault
	RejectedBytes int64  // their compact JSON
	Bytes         int64  // what is charged for all valid entries
	Apart         int64  // of it, for those that are left out

	Faults          []Fault
	FaultsTruncated bool // there were more faults than Limits.Faults
	Rejections      []Rejection

	HasAPIKey bool   // the body has the deprecated member api_key
	APIKey    string // its value; empty if it is no string
}

// Valid is how many entries are valid.
func (b *Batch) Valid() int { return len(b.Accepted) + b.LeftOut }

// Errors is how many valid entries carry an error payload.
func (b *Batch) Errors() (errors int) {
	for i := range b.Accepted {
		if b.Accepted[i].HasError {
			errors++
		}
	}
	return errors
}

// A Line is one valid entry.
type Line struct {
	End      int   // offset in Lines just behind the entry's newline
	HasError bool  // it carries an error payload
	Beyond   int32 // bytes that are charged beyond its length, as rules changed it after the charge; perhaps negative
}

// A Part is a run of a batch's entries that fits into one record.
type Part struct {
	First  int // index of its first entry among the accepted ones
	Count  int
	Errors int   // entries that carry an error payload
	Bytes  int64 // what is charged for it
	Lines  []byte
}

// Parts cuts the batch into runs of at most maxBytes of lines and
// appends them. A larger entry gets its own part. The same batch is
// always cut the same way. The last part bears the charge of what is left out.
func (b *Batch) Parts(parts []Part, maxBytes int) []Part {
	first, start := 0, 0
	for i, line := range b.Accepted {
		if i > first && line.End-start > maxBytes {
			parts = append(parts, b.part(first, i, start))
			first, start = i, b.Accepted[i-1].End
		}
	}
	if first < len(b.Accepted) {
		parts = append(parts, b.part(first, len(b.Accepted), start))
		parts[len(parts)-1].Bytes += b.Apart
	}
	return parts
}

func (b *Batch) part(first, after, start int) Part {
	lines := b.Lines[start:b.Accepted[after-1].End]
	part := Part{First: first, Count: after - first, Bytes: int64(len(lines) - (after - first)), Lines: lines}
	for _, line := range b.Accepted[first:after] {
		part.Bytes += int64(line.Beyond)
		if line.HasError {
			part.Errors++
		}
	}
	return part
}

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
