package tenants

import (
	"fmt"
	"log/slog"
	"unicode/utf8"
)

// Bounds of passwords, in characters. The
// upper one only bounds the work of a sign-in.
const (
	minPassword = 12
	maxPassword = 128
)

// A Password is a password in plaintext.
// Printing never shows it; only Reveal does.
type Password string

// Reveal returns the password in plaintext. Review every call.
func (p Password) Reveal() string { return string(p) }

// Format hides the password whatever the verb.
func (p Password) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// LogValue hides the password.
func (p Password) LogValue() slog.Value { return slog.StringValue(hidden) }

// MarshalText hides the password.
func (p Password) MarshalText() ([]byte, error) { return []byte(hidden), nil }

func checkPassword(field string, p Password) Invalid {
	n := utf8.RuneCountInString(string(p))
	if n >= minPassword && n <= maxPassword {
		return nil
	}
	return Invalid{{field, fmt.Sprintf("%s has %d characters.", field, n),
		fmt.Sprintf("Use %d to %d characters; several words are easier to remember than signs.", minPassword, maxPassword)}}
}
