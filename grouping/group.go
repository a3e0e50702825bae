package grouping

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/grouping/trace"
)

// Status is what people decided about a group.
type Status string

// The statuses. Every group begins unresolved.
const (
	Unresolved Status = "unresolved"
	Resolved   Status = "resolved"
	Ignored    Status = "ignored"
)

// ParseStatus reads a status.
func ParseStatus(word string) (Status, bool) {
	s := Status(word)
	return s, s == Unresolved || s == Resolved || s == Ignored
}

// GroupID is the id of the group that a hash creates. It follows
// from the hash, so groups rebuilt from the log keep their ids.
func GroupID(project string, version int, deciding Hash) string {
	sum := sha256.Sum256([]byte(project + "\n" + strconv.Itoa(version) + "\n" + deciding.String()))
	return groupPrefix + hex.EncodeToString(sum[:16])
}

const groupPrefix = "grp_"

// IsGroupID reports whether text has the form of a group's id.
func IsGroupID(text string) bool {
	digits, ok := strings.CutPrefix(text, groupPrefix)
	return ok && len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == ""
}

// Error is a log entry's error payload. Fields may be empty.
type Error struct {
	Type       string   // class of the error, as sent
	Message    string   // message of the error, as sent; may span several lines
	StackTrace []string // lines or pieces of a stack trace; a piece may itself hold many lines

	Libraries Libraries // packages that are not the project's own; nil: none are known
}

// HashScope is how much of an error a hash covers. Scopes are
// stored and shown, so they are never renamed.
type HashScope string

// The scopes, the strictest first.
const (
	ScopeTrace   HashScope = "trace"   // all exceptions of the chain with all own frames, and the templates of their messages
	ScopeStack   HashScope = "stack"   // the root cause: its type, the template of its message, three fifths of the own frames
	ScopeSite    HashScope = "site"    // its type, the first words of its message, the innermost own frames and what they called
	ScopePlace   HashScope = "place"   // fewer words and frames; similar errors, not the same
	ScopeClass   HashScope = "class"   // as place, but of the second frame the class alone; similar errors, not the same
	ScopePoint   HashScope = "point"   // its type and the innermost own frame; similar errors, not the same
	ScopeMessage HashScope = "message" // without a usable stack trace: type and template of the message
	ScopeType    HashScope = "type"    // the type alone; similar errors, not the same
	ScopeBudget  HashScope = "budget"  // nothing of the error: the budget of new groups was used up
)

// Level is one way to compare errors. Errors that are equal at a level are
// so at all looser ones: the deciding hash follows from every stricter one.
type Level struct {
	Scope    HashScope
	Frames   int  // of the innermost own frames of the root cause, at most
	Words    int  // of its message, at most
	Template bool // the whole template of its message counts
	Decides  bool // errors that are the same here are one group
	Stored   bool // groups are found by it
}

const unlimited = 1 << 20

// Levels are those of errors with a usable stack trace, from strict to
// loose. Those looser than the deciding one only find similar groups.
var Levels = [...]Level{
	{Scope: ScopeTrace, Frames: unlimited, Words: trace.MaxWords, Template: true, Stored: true},
	{Scope: ScopeStack, Frames: 10, Words: trace.MaxWords, Template: true},
	{Scope: ScopeSite, Frames: 8, Words: 5, Decides: true, Stored: true},
	{Scope: ScopePlace, Frames: 2, Words: 1},
	{Scope: ScopeClass, Frames: 2, Words: 1},
	{Scope: ScopePoint, Frames: 1, Stored: true},
}

// similar reports whether errors that are
// equal at this level need not be the same.
func (l Level) similar() bool {
	return l.Scope == ScopePlace || l.Scope == ScopeClass || l.Scope == ScopePoint
}

// Properties of Levels.
const (
	deciding = 2 // the index of the level that decides
	stored   = 3 // how many are stored; of these
	joining  = 2 // so many join
)

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

// afterRetention is how many days a group outlives its last entries:
// an error that recurs within a month is the same to people.
const afterRetention = 30

// Expiry is the first day (UTC) on which an occurrence no longer keeps its
// group. It counts from acceptance, as an entry's own time may be anything.
func Expiry(accepted time.Time, retentionDays int) time.Time {
	year, month, day := accepted.UTC().Date()
	return time.Date(year, month, day+retentionDays+afterRetention+1, 0, 0, 0, 0, time.UTC)
}
