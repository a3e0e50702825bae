package contract

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Kinds of credentials.
const (
	CredentialAPIKey       = "api_key"
	CredentialServiceToken = "service_token"
	CredentialSession      = "session" // of a person who has signed in to the console
)

// States of a credential.
const (
	CredentialActive  = "active"
	CredentialRevoked = "revoked"
)

// What an API key may read; every key may write. Without a scope
// it may read all of its organization.
const (
	AccessFull    = "full"
	AccessProject = "project" // its own project alone
	AccessWrite   = "write"   // nothing
)

// Credential is the state of one credential on weir.credentials.v1; the
// record's key is CredentialKey of the secret. A revoked credential stays, so
// that its holder gets the reason; a tombstone makes it unknown.
type Credential struct {
	Kind          string     `json:"kind"`
	ID            string     `json:"id"`
	Organization  string     `json:"organization"` // empty: bound to the whole installation
	Project       string     `json:"project,omitempty"`
	Environment   string     `json:"environment,omitempty"`
	Member        string     `json:"member,omitempty"` // whose session it is
	Scopes        []string   `json:"scopes,omitempty"` // of a session: the member's role, as in "role:owner"
	State         string     `json:"state"`
	ExpiresAt     *time.Time `json:"expires_at,omitempty"`
	RatePerMinute int        `json:"rate_per_minute,omitempty"` // 0: no limit of its own
	Version       int64      `json:"version"`                   // grows with every change; an older one is ignored

	Access string `json:"access,omitempty"` // of an API key: what it may read; absent: full

	// Of a session: when its member last authenticated, and from when a use
	// renews it. Absent: unknown, and never.
	AuthenticatedAt *time.Time `json:"authenticated_at,omitempty"`
	RenewAt         *time.Time `json:"renew_at,omitempty"`
}

// CredentialKey is a secret's key on weir.credentials.v1: its
// SHA-256 in lower-case hexadecimal. A secret has 192 random
// bits, so a slow hash would gain nothing.
func CredentialKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
