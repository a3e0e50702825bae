package outcomes

import "time"

// Counts are how many requests of an organization ended how, in
// one stretch of time.
type Counts struct {
	Organization string
	Process      string // a run of ingest
	Sequence     int64  // grows with the process's counts of an organization, also by more than one
	From, To     time.Time
	Counts       []Count
}

// A Count is how many requests of a key ended alike. With too many keys,
// project, key and environment are empty.
type Count struct {
	Project         string
	APIKey          string // its id
	Environment     string
	Outcome, Reason string // see contract.RequestCount
	Requests        int64
	Entries         int64 // as far as they were read
	Bytes           int64 // of entries as they are charged; of what was refused before, those that came or were announced
	KeyInBody       int64 // of Requests: with the key in the body
}
