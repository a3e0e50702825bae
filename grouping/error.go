package grouping

import "strings"

// Error is a log entry's error payload. Fields may be empty.
type Error struct {
	Type       string   // class of the error, as sent
	Message    string   // message of the error, as sent; may span several lines
	StackTrace []string // lines or pieces of a stack trace; a piece may itself hold many lines

	Libraries Libraries // packages that are not the project's own; nil: none are known
}

// stack returns the pieces that hold the trace.
// Some senders put all of it into the message.
func (e *Error) stack() []string {
	if !e.inMessage() || strings.IndexByte(e.Message, '\n') < 0 {
		return e.StackTrace
	}
	return []string{e.Message}
}

// inMessage reports whether a trace can only be in the message.
func (e *Error) inMessage() bool {
	for _, piece := range e.StackTrace {
		if strings.TrimSpace(piece) != "" {
			return false
		}
	}
	return true
}

// firstLine returns the first non-blank line, trimmed.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}
