package contract

import "time"

// MaxClient limits the stored part of a client's User-Agent, in bytes.
const MaxClient = 200

// KeyUsed is a fact on weir.ingest.v1, keyed by APIKey. It counts the
// uses of an API key at one process of ingest or grouping in the few
// seconds since its last such record; the counts of all records of a
// key add up. Every request with the key, in time and over TLS, is in
// one of the four counts. A process that dies loses the last seconds:
// the counts are for people, not for charges.
type KeyUsed struct {
	Organization    string     `json:"organization"`
	Project         string     `json:"project"`
	APIKey          string     `json:"api_key"`                     // its id
	Accepted        int64      `json:"accepted"`                    // requests with some or all entries accepted
	Rejected        int64      `json:"rejected"`                    // requests that failed for a reason other than the key
	Refused         int64      `json:"refused"`                     // requests that failed because the key is revoked or expired
	Read            int64      `json:"read,omitempty"`              // admitted requests to read; absent: none, or of a version that did not count them
	FirstAcceptedAt *time.Time `json:"first_accepted_at,omitempty"` // of Accepted; absent if that is 0
	LastUsedAt      time.Time  `json:"last_used_at"`
	Address         string     `json:"address,omitempty"` // of the last request: an IP address
	Client          string     `json:"client,omitempty"`  // its User-Agent; at most MaxClient bytes
}

// Ways to expose an API key.
const (
	// ExposedPlainHTTP: it arrived in plaintext at a socket of Weir,
	// visible to the network between.
	ExposedPlainHTTP = "plain_http"
	// ExposedForwarded: a trusted proxy reported that its client used
	// plain HTTP. A misconfigured proxy reports that of every request:
	// a reason to look, not to revoke.
	ExposedForwarded = "forwarded_proto"
)

// KeyExposed is a fact on weir.ingest.v1, keyed by APIKey: a valid key
// was sent in plaintext. It is published again while that continues.
type KeyExposed struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"` // its id
	How          string    `json:"how"`     // ExposedPlainHTTP or ExposedForwarded
	At           time.Time `json:"at"`
	Address      string    `json:"address,omitempty"` // of the request: an IP address
	Client       string    `json:"client,omitempty"`  // its User-Agent; at most MaxClient bytes
}
