package tenants

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"strings"
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
