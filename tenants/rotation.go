package tenants

import (
	"errors"
	"fmt"
	"time"
)

// MaxOverlap is how long a key may work beside the one that replaces it.
const MaxOverlap = 7 * 24 * time.Hour

// Why a key can't be rotated or changed.
var (
	// ErrKeyRevoked and ErrKeyExpired mean that the key has ended.
	ErrKeyRevoked = errors.New("the API key is revoked")
	ErrKeyExpired = errors.New("the API key has expired")
	// ErrKeyRotated means that the key was
	// replaced: its successor is the one to rotate.
	ErrKeyRotated = errors.New("the API key was rotated already")
)

// RotateAPIKey is the command to replace a key, which
// still works for a while so that its holders can switch.
type RotateAPIKey struct {
	To      string        // id of the new key
	Digest  SecretDigest  // of the new key
	Overlap time.Duration // 0 to MaxOverlap: how long the old key still works
	At      time.Time
}

// APIKeyRotated records that another key
// replaces an API key, which ends at ExpiresAt.
type APIKeyRotated struct {
	APIKey    string    `json:"api_key"`
	To        string    `json:"to"` // id of the other key
	ExpiresAt time.Time `json:"expires_at"`
	At        time.Time `json:"at"`
}

// EventName implements Event.
func (APIKeyRotated) EventName() string { return "tenants.v1.api_key_rotated" }

func (e APIKeyRotated) audit() auditForm { return auditForm{"api_key.rotated", e.At, &APIKey{}} }

// Publication implements Event.
func (APIKeyRotated) Publication() Publication { return PublishedCredential }

// Check returns Invalid with every fault of the command, or nil.
func (c RotateAPIKey) Check() error {
	if c.Overlap < 0 || c.Overlap > MaxOverlap {
		return Invalid{{"overlap_seconds", fmt.Sprintf("overlap_seconds is %d.", int64(c.Overlap/time.Second)),
			fmt.Sprintf("Use 0 to %d: the key ends at once, or up to 7 days later.", int64(MaxOverlap/time.Second))}}
	}
	return nil
}

// Rotate decides that the key ends after the overlap, or at its own end
// if that is earlier. A revoked, expired or rotated key can't be rotated.
func (k APIKey) Rotate(cmd RotateAPIKey) ([]Event, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	if err := k.usable(cmd.At); err != nil {
		return nil, err
	}
	if k.RotatedTo != "" {
		return nil, ErrKeyRotated
	}
	return []Event{APIKeyRotated{APIKey: k.ID, To: cmd.To, ExpiresAt: earlierEnd(k.ExpiresAt, cmd.At.Add(cmd.Overlap)), At: cmd.At}}, nil
}

// Successor is the command for the key that replaces this one: same
// project, environment, name, limit and access, and the same lifetime.
func (k APIKey) Successor(cmd RotateAPIKey) IssueAPIKey {
	successor := IssueAPIKey{
		ID: cmd.To, Organization: k.Organization, Project: k.Project, Environment: k.Environment, Name: k.Name,
		RatePerMinute: k.RatePerMinute, Access: k.Access, Digest: cmd.Digest, Replaces: k.ID, At: cmd.At,
	}
	if k.Lifetime > 0 {
		successor.ExpiresAt = cmd.At.Add(k.Lifetime)
	}
	return successor
}

// usable is nil if the key works at now.
func (k APIKey) usable(now time.Time) error {
	switch {
	case k.ID == "":
		return ErrNotFound
	case k.State(now) == Revoked:
		return ErrKeyRevoked
	case k.State(now) == Expired:
		return ErrKeyExpired
	}
	return nil
}

// earlierEnd is the earlier of an end, zero for never, and another time.
func earlierEnd(end, other time.Time) time.Time {
	if !end.IsZero() && end.Before(other) {
		return end
	}
	return other
}
