package httpapi

import "regexp"

// secretForm is how every credential of Weir looks: a prefix and
// 48 hexadecimal digits.
var secretForm = regexp.MustCompile(`(weir[a-z]*_)[0-9a-fA-F]{48,}`)

// Redact removes credentials from text. They get into the wrong
// places, such as a path, a query or the name of the client, and
// must not be kept, shown or logged.
func Redact(text string) string {
	return secretForm.ReplaceAllString(text, "${1}[redacted]")
}
