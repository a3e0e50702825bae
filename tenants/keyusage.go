package tenants

import "time"

// KeyUsage is how an API key was used. It is not exact: a process
// that dies loses its last seconds. Zero times are never.
type KeyUsage struct {
	Accepted        int64 // requests whose entries were accepted
	Rejected        int64 // requests that failed, not because of the key
	Refused         int64 // requests that failed because the key had ended
	Read            int64 // requests that could read
	AcceptedSince   int64 // of Accepted, those since the key's rotation
	RejectedSince   int64
	ReadSince       int64
	FirstAcceptedAt time.Time
	LastUsedAt      time.Time
	Address         string // of the last use; may be empty
	Client          string // of the last use: its User-Agent; may be empty
}

// Requests is how many requests used the key while it worked.
func (u KeyUsage) Requests() int64 { return u.Accepted + u.Rejected + u.Read }

// RequestsSince is how many of them followed the key's rotation.
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
