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
	CredentialSession      = "session" // of a person signed in to the console
)

// States of a credential.
const (
	CredentialActive  = "active"
	CredentialRevoked = "revoked"
)

// What an API key may read; every key may write. Without a scope it may
// read its whole organization.
const (
	AccessFull    = "full"
	AccessProject = "project" // only its own project
	AccessWrite   = "write"   // nothing
)

// Credential is the state of one credential on weir.credentials.v1,
// keyed by CredentialKey of its secret. A revoked credential stays, so
// that its holder gets the reason; a tombstone makes it unknown.
type Credential struct {
	Kind          string     `json:"kind"`
	ID            string     `json:"id"`
	Organization  string     `json:"organization"` // empty: of the whole installation
	Project       string     `json:"project,omitempty"`
	Environment   string     `json:"environment,omitempty"`
	Member        string     `json:"member,omitempty"` // the session's member
	Scopes        []string   `json:"scopes,omitempty"` // of a session: the member's role, as in "role:owner"
	State         string     `json:"state"`
	ExpiresAt     *time.Time `json:"expires_at,omitempty"`
	RatePerMinute int        `json:"rate_per_minute,omitempty"` // 0: no own limit
	Version       int64      `json:"version"`                   // grows with every change; an older one is ignored

	Access string `json:"access,omitempty"` // what an API key may read; absent: full

	// Of a session: when its member last authenticated, and from when
	// on use renews it. Absent: unknown, and never.
	AuthenticatedAt *time.Time `json:"authenticated_at,omitempty"`
	RenewAt         *time.Time `json:"renew_at,omitempty"`
}

// CredentialsComparedKey is the key of the marker on weir.credentials.v1.
// It never equals a CredentialKey or a HolderKey.
const CredentialsComparedKey = "compared"

// CredentialsCompared is the marker after tenants has compared the topic
// with its tables: what the log had lost precedes it.
type CredentialsCompared struct {
	Start string `json:"start"` // of the process that compared; empty: it has no name
}

// CredentialKey returns a secret's key on weir.credentials.v1: its
// SHA-256 in lower-case hexadecimal. A secret has 192 random bits, so a
// slow hash would gain nothing.
func CredentialKey(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
