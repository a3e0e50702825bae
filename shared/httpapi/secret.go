package httpapi

import (
	"fmt"
	"log/slog"
)

// redacted is what a Secret shows of itself.
const redacted = "[redacted]"

// A Secret is a text that never shows itself: not in logs, not
// in errors, not in JSON.
type Secret string

// Reveal returns the text. Every call is a place to look at twice.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return redacted }

// GoString hides the secret.
func (s Secret) GoString() string { return redacted }

// Format hides the secret whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
