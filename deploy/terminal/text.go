package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Line returns foreign text as one line to read: white space is a space,
// and what a terminal would obey or hide is escaped, such as \x1b.
func Line(s string) string { return escape(s, false) }

// Exact returns foreign text as one line that tells every byte: line
// breaks are escaped, too, and the backslash that begins escapes.
func Exact(s string) string { return escape(s, true) }

// ExactLines is Exact for text of several lines.
func ExactLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Exact(lines[i])
	}
	return strings.Join(lines, "\n")
}

// escape replaces control characters, invisible ones and invalid UTF-8.
func escape(s string, exact bool) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case !exact && unicode.IsSpace(r):
			b.WriteByte(' ')
		case exact && r == '\\':
			b.WriteString(`\\`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}
