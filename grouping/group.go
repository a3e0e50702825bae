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
	Archived   Status = "archived" // by Weir itself: no error came for as long as the project has set
)

// ParseStatus reads a status.
func ParseStatus(word string) (Status, bool) {
	s := Status(word)
	return s, s == Unresolved || s == Resolved || s == Ignored || s == Archived
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

	Learned Learned       // what earlier errors of the project have shown
	Context *EntryContext // what rules ask of the entry; nil: nothing
	Mapping trace.Mapping // where its calls were written, by source maps
}

// HashScope is how much of an error a hash covers. Scopes are
// stored and shown, so they are never renamed.
type HashScope string

// The scopes, the strictest first.
const (
	ScopeTrace   HashScope = "trace"   // all exceptions of the chain with all own frames, and their whole messages
	ScopeStack   HashScope = "stack"   // the root cause: its type, its whole message, ten own frames
	ScopeSite    HashScope = "site"    // its type, five words of its message, four own frames
	ScopePlace   HashScope = "place"   // its type, one word, two own frames; similar errors, not the same
	ScopePoint   HashScope = "point"   // its type and the innermost own frame; similar errors, not the same
	ScopeMessage HashScope = "message" // without a usable stack trace: type and message
	ScopeType    HashScope = "type"    // the type alone; similar errors, not the same
	ScopeSplit   HashScope = "split"   // as trace or stack, whatever was learned: somebody split these errors off
	ScopeRule    HashScope = "rule"    // what a rule of the project says
	ScopeBudget  HashScope = "budget"  // nothing of the error: the budget of new groups was used up
)

// Level is one way to compare errors. Errors that are equal at a level are
// so at all looser ones: the deciding hash follows from every stricter one.
type Level struct {
	Scope   HashScope
	Frames  int  // of the innermost own frames of the root cause, at most; one of a fault
	Words   int  // of its message without values, at most; none of a fault
	Whole   bool // the whole message counts, with where its values are
	Decides bool // errors that are the same here are one group
}

const unlimited = 1 << 20

// Levels are those of errors with a usable stack trace, from strict to
// loose. Those looser than the deciding one only find similar groups.
var Levels = [...]Level{
	{Scope: ScopeTrace, Frames: unlimited, Words: trace.MaxWords, Whole: true},
	{Scope: ScopeStack, Frames: 10, Words: trace.MaxWords, Whole: true},
	{Scope: ScopeSite, Frames: 4, Words: 5, Decides: true},
	{Scope: ScopePlace, Frames: 2, Words: 1},
	{Scope: ScopePoint, Frames: 1},
}

// Indexes of Levels.
const (
	stack    = 1 // of the whole message and ten frames
	deciding = 2 // of the one that decides
	loosest  = 4 // of the one that finds similar groups
)

// Occurrence is one log entry that carries an error.
type Occurrence struct {
	Organization string
	Project      string
	Entry        string    // id of the entry as clients see it
	Accepted     time.Time // when the entry was accepted
	Expires      time.Time // see Expiry
	At           time.Time // when it happened, by the entry; at the latest when that was accepted
	Ahead        int64     // the time that the entry names, in microseconds since 1970, where that is after its acceptance; else 0
	Severity     Severity
	Environment  string
	Release      string // empty: unknown, as the next ones
	Service      string
	Host         string
	User         string // whom it affected: an id, which is not stored
	Message      string // of the entry
	Error        Error
	DebugIDs     map[string]string // of scripts, by sourcemap.ScriptName
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
