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
