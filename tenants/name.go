package tenants

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of texts, in characters (Unicode code points).
const (
	maxName   = 200
	maxReason = 500
	maxID     = 64
)

// CleanName is a name as stored: trimmed.
func CleanName(name string) string {
	return strings.TrimSpace(name)
}

// checkName returns the fault of a name: it has
// 1 to 200 characters and no control characters.
func checkName(name string) Invalid {
	if CleanName(name) == "" {
		return Invalid{{"name", "name is missing.", fmt.Sprintf("Use 1 to %d characters.", maxName)}}
	}
	return checkText("name", name, maxName)
}

// checkText returns the fault of an optional text.
func checkText(field, text string, limit int) Invalid {
	text = strings.TrimSpace(text)
	if n := utf8.RuneCountInString(text); n > limit {
		return Invalid{{field, fmt.Sprintf("%s has %d characters.", field, n), fmt.Sprintf("Use at most %d.", limit)}}
	}
	if strings.ContainsFunc(text, isHidden) {
		return Invalid{{field, fmt.Sprintf("%s %q has a character that shows nothing.", field, text), "Leave it out."}}
	}
	return nil
}

// isHidden reports whether a character is no UTF-8, or shows nothing but breaks
// lines or turns their direction: by it a name could pass for another.
func isHidden(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}

// checkGiven returns the fault of a missing id.
func checkGiven(field, id string) Invalid {
	if id == "" {
		return Invalid{{field, field + " is missing.", fmt.Sprintf("Send the id of the %s as %q.", field, field)}}
	}
	return nil
}

// IsID reports whether text can be an id: 1 to 64 URL-safe characters.
func IsID(text string) bool {
	return text != "" && len(text) <= maxID && strings.IndexFunc(text, notURLSafe) < 0
}

func notURLSafe(r rune) bool {
	digitOrLetter := r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
	return !digitOrLetter && r != '_' && r != '-'
}

// oneOf lists the allowed values.
func oneOf[W ~string](words []W) string {
	texts := make([]string, len(words))
	for i, word := range words {
		texts[i] = string(word)
	}
	return "Use one of " + strings.Join(texts, ", ") + "."
}
