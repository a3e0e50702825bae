package httpapi

import "regexp"

// secretForm matches every credential of Weir: a prefix and
// 48 hexadecimal digits.
var secretForm = regexp.MustCompile(`(weir[a-z]*_)[0-9a-fA-F]{48,}`)

// Redact removes credentials from text. They get into wrong places,
// such as a path, a query or a User-Agent, and must not be stored,
// shown or logged.
func Redact(text string) string {
	return secretForm.ReplaceAllString(text, "${1}[redacted]")
}
