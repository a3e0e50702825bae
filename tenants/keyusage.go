package tenants

import "time"

// KeyUsage is how an API key was used, for people to read: a process that dies
// loses its last seconds. Zero times are never.
type KeyUsage struct {
	Accepted        int64 // requests whose entries were taken in
	Rejected        int64 // requests that failed for another reason than the key
	Refused         int64 // requests that failed because the key had ended
	Read            int64 // requests that were let in to read
	AcceptedSince   int64 // of Accepted, those since the key was rotated
	RejectedSince   int64
	ReadSince       int64
	FirstAcceptedAt time.Time
	LastUsedAt      time.Time
	Address         string // of the last use; may be empty
	Client          string // of the last use: its User-Agent; may be empty
}

// Requests is how many requests came with the key while it worked.
func (u KeyUsage) Requests() int64 { return u.Accepted + u.Rejected + u.Read }

// RequestsSince is how many of them came after the key was rotated.
func (u KeyUsage) RequestsSince() int64 { return u.AcceptedSince + u.RejectedSince + u.ReadSince }

// A KeyUser is a user of an API key.
type KeyUser struct {
	Address    string
	Client     string // its User-Agent
	LastUsedAt time.Time
}

// A UsedAPIKey is the reported use of an API key over a short time.
type UsedAPIKey struct {
	KeyUsage
	Organization string
	APIKey       string
}
