package outcomes

import "time"

// Counts are an organization's requests by outcome in a stretch of time.
type Counts struct {
	Organization string
	Process      string // a run of ingest
	Sequence     int64  // grows by one or more with each record
	From, To     time.Time
	Counts       []Count
}

// A Count sums requests of a key with one outcome. With too many keys,
// project, key and environment are empty.
type Count struct {
	Project         string
	APIKey          string // its id
	Environment     string
	Outcome, Reason string // see contract.RequestCount
	Requests        int64
	Entries         int64 // as far as they were read
	Bytes           int64 // of entries as charged; unread: those received or announced
	KeyInBody       int64 // of Requests: with the key in the body
}
