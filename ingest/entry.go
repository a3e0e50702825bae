package ingest

import (
	"fmt"
	"strings"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// Members of an entry and of its error, numbered for the sets of members seen.
const (
	entryTimestamp = 1 + iota
	entryLevel
	entryMessage
	entryEnvironment
	entryMetadata
	entryError
	entryProjectID
	errorType
	errorMessage
	errorStackTrace
	errorContext
)

// memberNames are the members' names as a pointer has them, from the entry on.
var memberNames = [...]string{
	entryTimestamp:   "/" + entryfield.Timestamp,
	entryLevel:       "/" + entryfield.Level,
	entryMessage:     "/" + entryfield.Message,
	entryEnvironment: "/" + entryfield.Environment,
	entryMetadata:    "/" + entryfield.Metadata,
	entryError:       "/" + entryfield.Error,
	entryProjectID:   "/" + entryfield.ProjectID,
	errorType:        inError + entryfield.ErrorType,
	errorMessage:     inError + entryfield.ErrorMessage,
	errorStackTrace:  inError + entryfield.ErrorStackTrace,
	errorContext:     inError + entryfield.ErrorContext,
}

const inError = "/" + entryfield.Error + "/"

func entryMember(name []byte) int {
	switch string(name) {
	case entryfield.Timestamp:
		return entryTimestamp
	case entryfield.Level:
		return entryLevel
	case entryfield.Message:
		return entryMessage
	case entryfield.Environment:
		return entryEnvironment
	case entryfield.Metadata:
		return entryMetadata
	case entryfield.Error:
		return entryError
	case entryfield.ProjectID:
		return entryProjectID
	}
	return 0
}

func errorMember(name []byte) int {
	switch string(name) {
	case entryfield.ErrorType:
		return errorType
	case entryfield.ErrorMessage:
		return errorMessage
	case entryfield.ErrorStackTrace:
		return errorStackTrace
	case entryfield.ErrorContext:
		return errorContext
	}
	return 0
}

const required = 1<<entryTimestamp | 1<<entryLevel | 1<<entryMessage

// An entryParser reads entries, one after the other.
type entryParser struct {
	scan    *scanner
	limits  Limits
	names   names // unknown members
	faults  faults
	scratch []byte
	entry   entryState
}

// entryState is what is known of the entry being read.
type entryState struct {
	hasError bool
	line     int  // where its kept text starts
	seen     uint // members that were there
	given    uint // members that were there and not null
}

func newEntryParser(scan *scanner, limits Limits) entryParser {
	return entryParser{scan: scan, limits: limits, faults: faults{limit: max(limits.Faults, 1)}}
}

// read reads the entry at i, keeps its text without white
// space, and returns the offset behind it.
func (p *entryParser) read(i, index int) int {
	kept := &p.scan.kept
	p.entry = entryState{line: kept.end}
	p.faults.begin(index)
	p.names.reset()
	kept.begin(i)
	if i = p.object(i); i < 0 {
		return i
	}
	kept.finish(i)
	if size := kept.end - p.entry.line; size > p.limits.Entry {
		p.faults.add(CodeEntryTooLarge, "", fmt.Sprintf("The entry has %d bytes of JSON without white space; the limit is %d.", size, p.limits.Entry),
			"Send less in one entry.")
	}
	return i
}

func (p *entryParser) object(i int) int {
	if p.scan.text[i] != '{' {
		p.faults.add(CodeInvalidType, "", "The entry is "+jsonKind(p.scan.text[i])+", not an object.", "Send each entry as an object.")
		return p.scan.value(i, 3)
	}
	if i = p.members(i, 4, entryMember, ""); i >= 0 && p.entry.given&required != required {
		p.missingFields()
	}
	return i
}

// members reads the members of an entry, or of its error. number returns
// that of a member by its name, 0 for an unknown one.
func (p *entryParser) members(i, depth int, number func(name []byte) int, parent string) int {
	base := len(p.names.spans)
	i, more := p.scan.first(i, '}')
	for more {
		start := i
		if i = p.scan.name(i); i < 0 {
			return i
		}
		name := p.scan.inside(start, i).decode(&p.scratch)
		member := number(name) // now, because white space behind the name may move the text
		if member == 0 && p.scan.kept.place(i-1)-p.entry.line <= p.limits.Entry {
			p.names.add(name)
		}
		if i = p.scan.colon(i); i < 0 {
			return i
		}
		if i = p.field(member, i, depth); i < 0 {
			return i
		}
		i, more = p.scan.next(i, '}')
	}
	if twice := p.names.close(base); twice != nil {
		p.faults.duplicate(memberPointer(parent, twice), quoteShort(twice))
	}
	return i
}

func (p *entryParser) missingFields() {
	fixes := [...]string{
		entryTimestamp: `Add "timestamp", the UTC time of the event such as 2026-01-31T12:00:00.000Z.`,
		entryLevel:     `Add "level": one of debug, info, warn, error, fatal.`,
		entryMessage:   `Add "message", a string.`,
	}
	for member := entryTimestamp; member <= entryMessage; member++ {
		if p.entry.given&(1<<member) == 0 {
			p.faults.add(CodeMissingField, memberNames[member], "The required field "+memberLabel(member)+" is missing or null.", fixes[member])
		}
	}
}

func (p *entryParser) field(member, i, depth int) int {
	if member == 0 {
		return p.scan.value(i, depth)
	}
	if p.entry.seen&(1<<member) != 0 {
		p.faults.duplicate(memberNames[member], memberLabel(member))
		return p.scan.value(i, depth)
	}
	p.entry.seen |= 1 << member
	if isNull(p.scan.text[i:]) {
		return p.scan.value(i, depth)
	}
	p.entry.given |= 1 << member
	switch member {
	case entryMetadata, errorContext:
		return p.objectField(i, depth, member)
	case entryError:
		return p.errorPayload(i)
	case errorStackTrace:
		return p.stackTrace(i)
	}
	return p.stringField(i, depth, member)
}

// stringField reads a member that must be a string.
func (p *entryParser) stringField(i, depth, member int) int {
	if p.scan.text[i] != '"' {
		return p.wrongType(i, depth, member, "a string")
	}
	start := i
	if i = p.scan.str(i); i < 0 {
		return i
	}
	text := p.scan.inside(start, i)
	switch member {
	case entryTimestamp:
		p.timestamp(text)
	case entryLevel:
		p.level(text)
	case entryMessage:
		p.message(text)
	}
	return i
}

func (p *entryParser) timestamp(text quoted) {
	if _, ok := ParseInstant(text.decode(&p.scratch)); !ok {
		p.faults.add(CodeInvalidTimestamp, memberNames[entryTimestamp], quoteShort(text.raw)+" is not a UTC time of RFC 3339.",
			"Send the event's time in UTC as YYYY-MM-DDTHH:MM:SS, with a fraction of 1 to 9 digits or none, then Z or +00:00.")
	}
}

func (p *entryParser) level(text quoted) {
	if _, ok := ParseSeverity(text.decode(&p.scratch)); !ok {
		p.faults.add(CodeInvalidLevel, memberNames[entryLevel], quoteShort(text.raw)+" is not a level.",
			"Send one of debug, info, warn, error, fatal, in lower case.")
	}
}

func (p *entryParser) message(text quoted) {
	if len(text.raw) <= p.limits.Message { // no string decodes to more bytes than it has
		return
	}
	if size := len(text.decode(&p.scratch)); size > p.limits.Message {
		p.faults.add(CodeMessageTooLarge, memberNames[entryMessage], fmt.Sprintf("The message has %d bytes of UTF-8; the limit is %d.", size, p.limits.Message),
			`Shorten the message; details fit into "metadata".`)
	}
}

// objectField reads a member that must be an object.
func (p *entryParser) objectField(i, depth, member int) int {
	if p.scan.text[i] != '{' {
		return p.wrongType(i, depth, member, "an object")
	}
	start := p.scan.kept.place(i)
	if i = p.scan.object(i, depth); i < 0 {
		return i
	}
	if size := p.scan.kept.place(i) - start; member == entryMetadata && size > p.limits.Metadata {
		p.faults.add(CodeMetadataTooLarge, memberNames[entryMetadata],
			fmt.Sprintf("The metadata has %d bytes of JSON without white space; the limit is %d.", size, p.limits.Metadata),
			"Send less metadata.")
	}
	return i
}

// errorPayload reads the object that describes an error.
func (p *entryParser) errorPayload(i int) int {
	if p.scan.text[i] != '{' {
		return p.wrongType(i, 4, entryError, "an object")
	}
	p.entry.hasError = true
	return p.members(i, 5, errorMember, memberNames[entryError])
}

// stackTrace reads an array of strings.
func (p *entryParser) stackTrace(i int) int {
	if p.scan.text[i] != '[' {
		return p.wrongType(i, 5, errorStackTrace, "an array of strings")
	}
	i, more := p.scan.first(i, ']')
	for frame := 0; more; frame++ {
		if p.scan.text[i] != '"' {
			p.wrongFrame(i, frame)
		}
		if i = p.scan.value(i, 6); i < 0 {
			return i
		}
		i, more = p.scan.next(i, ']')
	}
	return i
}

func (p *entryParser) wrongFrame(i, frame int) {
	path := fmt.Sprintf("%s/%d", memberNames[errorStackTrace], frame)
	p.faults.add(CodeInvalidType, path, "A stack frame is "+jsonKind(p.scan.text[i])+", not a string.", "Send one string for each frame.")
}

// wrongType rejects the entry and passes the value.
func (p *entryParser) wrongType(i, depth, member int, want string) int {
	label := memberLabel(member)
	p.faults.add(CodeInvalidType, memberNames[member], label+" is "+jsonKind(p.scan.text[i])+", not "+want+".", "Send "+label+" as "+want+".")
	return p.scan.value(i, depth)
}

// memberLabel is a member's name for a person: "error.type" in quotes.
func memberLabel(member int) string {
	return `"` + strings.ReplaceAll(memberNames[member][1:], "/", ".") + `"`
}

// An Entry is one entry of a batch, read back from its line.
type Entry struct {
	Time        Instant
	Level       Severity
	Message     []byte // decoded
	Environment []byte // decoded; empty if the entry names none
	HasError    bool
}

// ReadBack reads an entry back from its compact text, without the
// newline. It shares the text's memory, and fails for one that no Parser
// has accepted, as far as it looks.
func ReadBack(text []byte) (entry Entry, err error) {
	timed, leveled, said := false, false, false
	end, _ := members(text, func(name, value []byte) bool {
		if value[0] != '"' {
			entry.HasError = entry.HasError || value[0] == '{' && string(decodedString(name)) == entryfield.Error
			return false
		}
		switch string(decodedString(name)) {
		case entryfield.Timestamp:
			entry.Time, timed = ParseInstant(decodedString(value))
		case entryfield.Level:
			entry.Level, leveled = ParseSeverity(decodedString(value))
		case entryfield.Message:
			entry.Message, said = decodedString(value), true
		case entryfield.Environment:
			entry.Environment = decodedString(value)
		}
		return false
	})
	if end != len(text)-1 || text[0] != '{' || text[end] != '}' || !timed || !leveled || !said {
		return Entry{}, fmt.Errorf("cannot read entry %.100q: it was accepted by none", text)
	}
	return entry, nil
}

// A Severity is the level of an entry. Severities are ordered.
type Severity uint8

// The five severities. SeverityNone is that of an entry
// without a valid one.
const (
	SeverityNone Severity = iota
	SeverityDebug
	SeverityInfo
	SeverityWarn
	SeverityError
	SeverityFatal
)

// ParseSeverity accepts exactly the five lower-case words.
func ParseSeverity(text []byte) (Severity, bool) {
	switch string(text) {
	case "debug":
		return SeverityDebug, true
	case "info":
		return SeverityInfo, true
	case "warn":
		return SeverityWarn, true
	case "error":
		return SeverityError, true
	case "fatal":
		return SeverityFatal, true
	}
	return SeverityNone, false
}

// String is the level, or "none".
func (s Severity) String() string {
	if s > SeverityFatal {
		s = SeverityNone
	}
	return [...]string{"none", "debug", "info", "warn", "error", "fatal"}[s]
}

// A SeveritySet is a set of severities; the empty set means all.
type SeveritySet uint8

// With returns the set with one more.
func (s SeveritySet) With(one Severity) SeveritySet { return s | 1<<one }

// Has reports whether one is in the set, or the set is empty.
func (s SeveritySet) Has(one Severity) bool { return s == 0 || s&(1<<one) != 0 }
