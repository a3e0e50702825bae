package httpapi

import (
	"fmt"
	"log/slog"
)

// redacted replaces a Secret's text.
const redacted = "[redacted]"

// A Secret is a text that is never shown: not in logs, not in errors,
// not in JSON.
type Secret string

// Reveal returns the text. Review every call.
func (s Secret) Reveal() string { return string(s) }

// String hides the secret.
func (s Secret) String() string { return redacted }

// GoString hides the secret.
func (s Secret) GoString() string { return redacted }

// Format hides the secret for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(redacted)) }

// LogValue hides the secret.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the secret.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }
