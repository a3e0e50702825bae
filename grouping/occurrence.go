package grouping

import "time"

// Occurrence is one log entry that carries an error.
type Occurrence struct {
	Organization string
	Project      string
	Entry        string    // id of the entry as clients see it
	Accepted     time.Time // when the entry was accepted
	Expires      time.Time // see Expiry
	At           time.Time // when it happened, by the entry
	Severity     Severity
	Environment  string
	Message      string // of the entry
	Error        Error
}

// Severity is the level of a log entry, as a bit, so that a set
// of severities is one number.
type Severity uint8

// The severities.
const (
	SeverityDebug Severity = 1 << iota
	SeverityInfo
	SeverityWarn
	SeverityError
	SeverityFatal
)

var severities = [...]string{"debug", "info", "warn", "error", "fatal"}

// ParseSeverity reads one of the five words.
func ParseSeverity(word string) (Severity, bool) {
	for i, s := range severities {
		if s == word {
			return 1 << i, true
		}
	}
	return 0, false
}

// Names lists the severities of a set, the least severe first.
func (s Severity) Names() []string {
	words := make([]string, 0, len(severities))
	for i, word := range severities {
		if s&(1<<i) != 0 {
			words = append(words, word)
		}
	}
	return words
}
