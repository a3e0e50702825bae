package tenants

import (
	"fmt"
	"strings"
)

// Bounds of e-mail addresses, in characters (RFC 5321).
const (
	maxEmail      = 254
	maxEmailLocal = 64
)

// NormalEmail is an address for comparison: trimmed, in lower case.
// Providers that distinguish case are rarer than people who type a capital.
func NormalEmail(text string) string {
	return strings.ToLower(strings.TrimSpace(text))
}

// IsEmail reports whether text can be an address, of ASCII
// only: other characters may become, or look, equal.
func IsEmail(text string) bool {
	local, domain, found := strings.Cut(NormalEmail(text), "@")
	fits := len(local)+1+len(domain) <= maxEmail && len(local) <= maxEmailLocal
	parts := dotted(local, notInLocal) && dotted(domain, notInDomain) && strings.Contains(domain, ".")
	return found && fits && parts && isASCII(text)
}

func checkEmail(field, text string) Invalid {
	if IsEmail(text) {
		return nil
	}
	return Invalid{{field, fmt.Sprintf("%s is %q.", field, text), "Use an address such as ada@example.com."}}
}

// dotted reports whether text is words separated by single dots.
func dotted(text string, foreign func(rune) bool) bool {
	for word := range strings.SplitSeq(text, ".") {
		if word == "" || strings.ContainsFunc(word, foreign) {
			return false
		}
	}
	return true
}

func notInDomain(r rune) bool {
	digitOrLetter := r >= '0' && r <= '9' || r >= 'a' && r <= 'z'
	return !digitOrLetter && r != '-'
}

func notInLocal(r rune) bool {
	return notInDomain(r) && !strings.ContainsRune("!#$%&'*+/=?^_`{|}~", r)
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
