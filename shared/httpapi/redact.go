package httpapi

import "regexp"

// secretForm is how every credential of Weir looks: a prefix and 48 hexadecimal digits.
var secretForm = regexp.MustCompile(`(weir[a-z]*_)[0-9a-fA-F]{48,}`)

// Redact is text without the credentials in it. They get into the wrong places, such as a path, a query or the name of the
// client, and what is kept, shown or logged must not give them away.
func Redact(text string) string {
	return secretForm.ReplaceAllString(text, "${1}[redacted]")
}
