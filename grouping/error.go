package grouping

import "strings"

// Error is the error payload of a log entry. Every field may be empty.
type Error struct {
	Type       string   // class of the error, as sent
	Message    string   // message of the error, as sent; may span several lines
	StackTrace []string // lines or pieces of a stack trace; a piece may itself hold many lines
}

// stack returns the pieces that hold the trace. Some senders put the whole trace into the message.
func (e *Error) stack() []string {
	if len(e.StackTrace) > 0 || strings.IndexByte(e.Message, '\n') < 0 {
		return e.StackTrace
	}
	return strings.Split(e.Message, "\n")
}

// firstLine returns the first line of s that is not blank, without surrounding white space.
func firstLine(s string) string {
	for s != "" {
		line, rest, _ := strings.Cut(s, "\n")
		if line = strings.TrimSpace(line); line != "" {
			return line
		}
		s = rest
	}
	return ""
}
