package tenants

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"
)

// Prefixes by which people and scanners recognize credentials.
const (
	APIKeyPrefix       = "weir_"
	ServiceTokenPrefix = "weirsvc_"
	SessionPrefix      = "weirses_"
)

const (
	secretBytes  = 24 // 192 random bits
	secretDigits = 2 * secretBytes
	shownDigits  = 4
)

// A Secret is a credential in plaintext.
// Printing never shows it; only Reveal does.
type Secret struct {
	prefix string
	digits string
}

// NewSecret draws a secret from a cryptographic source.
func NewSecret(prefix string, random io.Reader) (Secret, error) {
	var drawn [secretBytes]byte
	if _, err := io.ReadFull(random, drawn[:]); err != nil {
		return Secret{}, fmt.Errorf("cannot draw a secret: %w", err)
	}
	return Secret{prefix: prefix, digits: hex.EncodeToString(drawn[:])}, nil
}

// ParseSecret reads a secret. Its error does not show the text.
func ParseSecret(prefix, text string) (Secret, error) {
	digits, ok := strings.CutPrefix(text, prefix)
	if !ok || len(digits) != secretDigits || strings.Trim(digits, "0123456789abcdef") != "" {
		return Secret{}, fmt.Errorf("cannot read the secret: want %s and %d lower-case hexadecimal characters", prefix, secretDigits)
	}
	return Secret{prefix: prefix, digits: digits}, nil
}

// Next is the secret derived from this one and a salt. Both are needed.
func (s Secret) Next(salt string) Secret {
	drawn, err := hkdf.Key(sha256.New, []byte(s.digits), []byte(salt), "weir: the secret after this one", secretBytes)
	if err != nil {
		panic("BUG: " + err.Error()) // fails only for a length that no hash can give
	}
	return Secret{prefix: s.prefix, digits: hex.EncodeToString(drawn)}
}

// Reveal returns the secret in plaintext. Review every call.
func (s Secret) Reveal() string { return s.prefix + s.digits }

// Digest is what is stored of the secret.
func (s Secret) Digest() SecretDigest {
	sum := sha256.Sum256([]byte(s.Reveal()))
	return SecretDigest{
		Hash:  hex.EncodeToString(sum[:]),
		First: s.digits[:shownDigits],
		Last:  s.digits[secretDigits-shownDigits:],
	}
}

// Format hides the secret whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

const hidden = "[redacted]"

// A SecretDigest is what is stored of a secret:
// enough to recognize it, not to use it.
type SecretDigest struct {
	Hash  string `json:"hash"`  // SHA-256 of the whole secret, hexadecimal; the secret has 192 random bits, so a slow hash would buy nothing
	First string `json:"first"` // the first four characters after the prefix
	Last  string `json:"last"`  // the last four characters
}

// shown is the stored part of a secret, readable.
func (d SecretDigest) shown(prefix string) string {
	return prefix + d.First + "…" + d.Last
}

// A Credential is the present state of a secret.
type Credential struct {
	Hash    string // see SecretDigest
	Revoked bool
}

// A CredentialHolder is an entity with secrets, such as an API key.
type CredentialHolder interface {
	Credentials() []Credential
}

// Credentials are those of what is deleted, as one; none once it is gone.
func (d Deletion) Credentials() []Credential {
	if d.State() == Gone {
		return nil
	}
	return []Credential{{d.Kind() + "/" + d.ID(), d.State() != DeletionCancelledState}}
}

// Credentials are that of the key.
func (k APIKey) Credentials() []Credential {
	return []Credential{{k.Digest.Hash, k.Revocation.state() == Revoked}}
}

// Credentials are that of the token.
func (s ServiceToken) Credentials() []Credential {
	return []Credential{{s.Digest.Hash, s.Revocation.state() == Revoked}}
}

// Credentials are those of the session's
// secret, the previous one and the dropped one.
func (s Session) Credentials() []Credential {
	revoked := s.Revocation.state() == Revoked
	held := []Credential{{s.Digest.Hash, revoked}}
	if s.Replaced.Digest != (SecretDigest{}) {
		held = append(held, Credential{s.Replaced.Digest.Hash, revoked})
	}
	if s.Dropped != (SecretDigest{}) {
		held = append(held, Credential{s.Dropped.Hash, true})
	}
	return held
}

// A State is whether a credential works.
type State string

// The states. Revoked is final, and stronger than expired.
const (
	Active  State = "active"
	Expired State = "expired"
	Revoked State = "revoked"
)

// A Revocation ends a credential. Its zero value is none.
type Revocation struct {
	At     time.Time
	Reason string // for people; may be empty
}

// Revoke is the command to end a credential at once, forever.
type Revoke struct {
	Reason string // for people; optional, as an emergency must not fail for lack of it
	At     time.Time
}

// Check returns Invalid with every fault of the command, or nil.
func (r Revoke) Check() error {
	return checkText("reason", r.Reason, maxReason).orNil()
}

func (r Revoke) reason() string {
	return strings.TrimSpace(r.Reason)
}

func (r Revocation) state() State {
	if r.At.IsZero() {
		return Active
	}
	return Revoked
}
