package v5

import (
	"strings"

	"github.com/weirlog/weir/grouping"
)

// What all versions speak of.
type (
	Error    = grouping.Error
	Frame    = grouping.Frame
	Language = grouping.Language
)

// stackOf returns the pieces that hold the trace. Some senders
// put the whole trace into the message.
func stackOf(e *Error) []string {
	if len(e.StackTrace) > 0 || strings.IndexByte(e.Message, '\n') < 0 {
		return e.StackTrace
	}
	return []string{e.Message}
}

// firstLine returns the first line of s that is not blank,
// without surrounding white space.
func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}
