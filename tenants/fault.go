package tenants

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Why a command is refused; see also Invalid.
var (
	// ErrNotFound is for what does not exist or
	// is another organization's: they look alike.
	ErrNotFound = errors.New("there is no such thing")
	// ErrReused means that an Idempotency-Key
	// was used before with another request.
	ErrReused = errors.New("the idempotency key was used for another request")
	// ErrShownOnce means that the request was answered
	// before with a secret, which can't be shown again.
	ErrShownOnce = errors.New("the secret was shown once and is not kept")
	// ErrForbidden means that the caller may not do this.
	ErrForbidden = errors.New("the caller may not do this")
)

// A Fault is one value that can't be accepted.
type Fault struct {
	Field  string // its name in the API
	Detail string // names the value
	Fix    string // the way out
}

// Invalid lists all faults of a command, so that they can be fixed at once.
type Invalid []Fault

// Error lists the faults.
func (i Invalid) Error() string {
	var texts []string
	for _, fault := range i {
		texts = append(texts, fault.Detail)
	}
	return strings.Join(texts, " ")
}

// orNil is nil without faults, as an empty Invalid is not a nil error.
func (i Invalid) orNil() error {
	if len(i) == 0 {
		return nil
	}
	return i
}

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
