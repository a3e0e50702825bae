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

// entryState is the state of the entry being read.
type entryState struct {
	faulty   bool
	hasError bool
	line     int  // where its kept text starts
	seen     uint // members that were there
	given    uint // members that were there and not null

	time        Instant
	level       Severity
	message     quoted
	environment quoted
}

// quoted is the inside of a string as it was sent.
type quoted struct {
	raw     []byte
	escaped bool
}

// readEntry reads the entry at i, keeps its text without white
// space, and returns the offset behind it.
func (p *Parser) readEntry(i int) int {
	p.index = p.batch.Entries
	p.entry = entryState{line: p.kept}
	p.run, p.keeping = i, true
	if i = p.entryValue(i); i < 0 {
		return i
	}
	p.keep(i)
	p.keeping = false
	return p.skip(i)
}

func (p *Parser) entryValue(i int) int {
	if p.text[i] != '{' {
		p.fault(CodeInvalidType, "", "The entry is "+p.kind(i)+", not an object.", "Send each entry as an object.")
		return p.value(i, 3)
	}
	base := len(p.names.spans)
	if i = p.fields(i, entryMember, entryField); i < 0 {
		return i
	}
	p.unique(base, "")
	if p.entry.given&required != required {
		p.missingFields()
	}
	return i
}

// unique rejects an entry with an unknown name twice.
func (p *Parser) unique(base int, parent string) {
	if twice := p.names.close(base); twice != nil {
		p.fault(CodeDuplicateField, memberPointer(parent, twice), "The name "+quoteShort(twice)+" is given twice.", "Give each name once.")
	}
}

func (p *Parser) missingFields() {
	fixes := [...]string{
		entryTimestamp: `Add "timestamp", the UTC time of the event such as 2026-01-31T12:00:00.000Z.`,
		entryLevel:     `Add "level": one of debug, info, warn, error, fatal.`,
		entryMessage:   `Add "message", a string.`,
	}
	for member := entryTimestamp; member <= entryMessage; member++ {
		if p.entry.given&(1<<member) == 0 {
			p.fault(CodeMissingField, memberNames[member], "The required field "+memberLabel(member)+" is missing or null.", fixes[member])
		}
	}
}

// oversized reports whether what was read of the entry up to i
// is too large already.
func (p *Parser) oversized(i int) bool { return p.place(i)-p.entry.line > p.limits.Entry }

// fault rejects the entry being read. path is the pointer from the entry on.
func (p *Parser) fault(code Code, path, detail, fix string) {
	p.entry.faulty = true
	if len(p.batch.Faults) >= p.limits.Faults {
		p.batch.FaultsTruncated = true
		return
	}
	p.batch.Faults = append(p.batch.Faults, Fault{
		Index: p.index, Pointer: entryPointer(p.index, path), Code: code, Detail: detail, Fix: fix,
	})
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

// ReadEntry reads an entry back from its compact text, without the
// newline. The result is valid until the Parser is reused. It
// fails for a text that no Parse has kept.
func (p *Parser) ReadEntry(text []byte) (Entry, error) {
	p.line = append(p.line[:0], text...)
	p.start(p.line)
	p.line = p.text[:0]
	p.batch.Entries, p.batch.Faults, p.kept = 0, p.batch.Faults[:0], 0
	if i := p.readEntry(0); i >= 0 && (i < p.size || p.kept < p.size) {
		p.fail(i, "there is white space in the line, or more than an entry")
	}
	if p.failure != nil {
		return Entry{}, p.failure
	}
	if p.entry.faulty {
		return Entry{}, fmt.Errorf("cannot read entry: %s at %s", p.batch.Faults[0].Code, p.batch.Faults[0].Pointer)
	}
	p.scratch = p.scratch[:0]
	message, environment := p.decoded(p.entry.message), p.decoded(p.entry.environment)
	return Entry{
		Time: p.entry.time, Level: p.entry.level, Message: message, Environment: environment, HasError: p.entry.hasError,
	}, nil
}

// decoded is the meaning of text; it appends to the scratch memory.
func (p *Parser) decoded(text quoted) []byte {
	if !text.escaped {
		return text.raw
	}
	start := len(p.scratch)
	p.scratch = unescape(p.scratch, text.raw)
	return p.scratch[start:]
}

func entryField(p *Parser, member, i int) int { return p.field(member, i, 4) }

// errorField reads a member of an entry's error.
func errorField(p *Parser, member, i int) int { return p.field(member, i, 5) }

func (p *Parser) field(member, i, depth int) int {
	if member == 0 {
		return p.value(i, depth)
	}
	if p.entry.seen&(1<<member) != 0 {
		p.fault(CodeDuplicateField, memberNames[member], "The name "+memberLabel(member)+" is given twice.", "Give each name once.")
		return p.value(i, depth)
	}
	p.entry.seen |= 1 << member
	if p.isNull(i) {
		return p.value(i, depth)
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
func (p *Parser) stringField(i, depth, member int) int {
	if p.text[i] != '"' {
		return p.wrongType(i, depth, member, "a string")
	}
	start := i + 1
	p.escaped = false
	if i = p.str(i); i < 0 {
		return i
	}
	text := quoted{raw: p.text[start : i-1], escaped: p.escaped}
	switch member {
	case entryTimestamp:
		p.timestamp(text)
	case entryLevel:
		p.level(text)
	case entryMessage:
		p.entry.message = text
		p.message(text)
	case entryEnvironment:
		p.entry.environment = text
	}
	return i
}

func (p *Parser) timestamp(text quoted) {
	at, ok := ParseInstant(p.unescaped(text.raw))
	if !ok {
		p.fault(CodeInvalidTimestamp, memberNames[entryTimestamp], quoteShort(text.raw)+" is not a UTC time of RFC 3339.",
			"Send the event's time in UTC as YYYY-MM-DDTHH:MM:SS, with a fraction of 1 to 9 digits or none, then Z.")
	}
	p.entry.time = at
}

func (p *Parser) level(text quoted) {
	level, ok := ParseSeverity(p.unescaped(text.raw))
	if !ok {
		p.fault(CodeInvalidLevel, memberNames[entryLevel], quoteShort(text.raw)+" is not a level.", "Send one of debug, info, warn, error, fatal, in lower case.")
	}
	p.entry.level = level
}

func (p *Parser) message(text quoted) {
	if len(text.raw) <= p.limits.Message { // no string decodes to more bytes than it has
		return
	}
	if size := len(p.unescaped(text.raw)); size > p.limits.Message {
		p.fault(CodeMessageTooLarge, memberNames[entryMessage], fmt.Sprintf("The message has %d bytes of UTF-8; the limit is %d.", size, p.limits.Message),
			`Shorten the message; details fit into "metadata".`)
	}
}

// objectField reads a member that must be an object.
func (p *Parser) objectField(i, depth, member int) int {
	if p.text[i] != '{' {
		return p.wrongType(i, depth, member, "an object")
	}
	start := p.place(i)
	if i = p.object(i, depth); i < 0 {
		return i
	}
	if size := p.place(i) - start; member == entryMetadata && size > p.limits.Metadata {
		p.fault(CodeMetadataTooLarge, memberNames[entryMetadata],
			fmt.Sprintf("The metadata has %d bytes of JSON without white space; the limit is %d.", size, p.limits.Metadata),
			"Send less metadata.")
	}
	return i
}

// errorPayload reads the object that describes an error.
func (p *Parser) errorPayload(i int) int {
	if p.text[i] != '{' {
		return p.wrongType(i, 4, entryError, "an object")
	}
	p.entry.hasError = true
	base := len(p.names.spans)
	if i = p.fields(i, errorMember, errorField); i < 0 {
		return i
	}
	p.unique(base, memberNames[entryError])
	return i
}

// stackTrace reads an array of strings.
func (p *Parser) stackTrace(i int) int {
	if p.text[i] != '[' {
		return p.wrongType(i, 5, errorStackTrace, "an array of strings")
	}
	i = p.skip(i + 1)
	if p.text[i] == ']' {
		return i + 1
	}
	for frame := 0; ; frame++ {
		if p.text[i] != '"' {
			p.wrongFrame(i, frame)
		}
		if i = p.value(i, 6); i < 0 {
			return i
		}
		i = p.skip(i)
		if p.text[i] == ']' {
			return i + 1
		}
		if i = p.comma(i, "an array"); i < 0 {
			return i
		}
	}
}

func (p *Parser) wrongFrame(i, frame int) {
	path := fmt.Sprintf("%s/%d", memberNames[errorStackTrace], frame)
	p.fault(CodeInvalidType, path, "A stack frame is "+p.kind(i)+", not a string.", "Send one string for each frame.")
}

// wrongType rejects the entry and passes the value.
func (p *Parser) wrongType(i, depth, member int, want string) int {
	label := memberLabel(member)
	p.fault(CodeInvalidType, memberNames[member], label+" is "+p.kind(i)+", not "+want+".", "Send "+label+" as "+want+".")
	return p.value(i, depth)
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
