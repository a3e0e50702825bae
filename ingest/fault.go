package ingest

import (
	"fmt"
	"strconv"
	"strings"
)

// Code is a machine-readable fault. Codes are part of the interface:
// they are never renamed.
type Code string

// Faults of a whole body.
const (
	CodeInvalidJSON    Code = "invalid_json"
	CodeEmptyBatch     Code = "empty_batch"
	CodeBatchTooLarge  Code = "batch_too_large"
	CodeTooManyFields  Code = "too_many_fields"
	CodeInvalidEntries Code = "invalid_entries" // no entry is valid, or one is not and the client asked for all or none
)

// Faults of one entry. The first three can also be of the body's members.
const (
	CodeMissingField     Code = "missing_field"
	CodeInvalidType      Code = "invalid_type"
	CodeDuplicateField   Code = "duplicate_field"
	CodeInvalidTimestamp Code = "invalid_timestamp"
	CodeInvalidLevel     Code = "invalid_level"
	CodeMessageTooLarge  Code = "message_too_large"
	CodeMetadataTooLarge Code = "metadata_too_large"
	CodeEntryTooLarge    Code = "entry_too_large"
)

// EntryCodes returns all codes of one entry.
func EntryCodes() []Code {
	return []Code{
		CodeMissingField, CodeInvalidType, CodeDuplicateField, CodeInvalidTimestamp, CodeInvalidLevel, CodeMessageTooLarge,
		CodeMetadataTooLarge, CodeEntryTooLarge,
	}
}

// A Fault is one fault of one entry.
type Fault struct {
	Index   int    `json:"index"`   // the entry's place in the array, from 0
	Pointer string `json:"pointer"` // RFC 6901, from the body's root
	Code    Code   `json:"code"`
	Detail  string `json:"detail"`
	Fix     string `json:"fix"`
}

// A BodyError is why no entry of a body can be accepted.
type BodyError struct {
	Code    Code
	Pointer string // RFC 6901; empty for the body itself
	Offset  int    // byte of the decoded body at which it was noticed, from 0
	Detail  string
	Fix     string
	Near    []byte // a copy of the text around it
	Cut     bool   // there is more than Near
}

func (e *BodyError) Error() string {
	return fmt.Sprintf("cannot accept body: %s at byte %d: %s", e.Code, e.Offset, e.Detail)
}

// faults lists what is wrong with entries, one after the other.
type faults struct {
	limit     int // of the list
	list      []Fault
	truncated bool
	index     int  // of the present entry
	faulty    bool // it has a fault

	rejections rejections // all, by code
}

func (f *faults) reset() {
	f.list, f.truncated = f.list[:0], false
	f.rejections.reset()
}

// begin goes on to an entry.
func (f *faults) begin(index int) { f.index, f.faulty = index, false }

// add rejects the entry. path is the pointer from the entry on.
func (f *faults) add(code Code, path, detail, fix string) {
	f.faulty = true
	sampled := f.rejections.count(code, f.index)
	f.truncated = f.truncated || len(f.list) >= f.limit
	if f.truncated && sampled == nil {
		return
	}
	fault := Fault{Index: f.index, Pointer: entryPointer(f.index, path), Code: code, Detail: detail, Fix: fix}
	if !f.truncated {
		f.list = append(f.list, fault)
	}
	if sampled != nil {
		sampled.Samples = append(sampled.Samples, Sample{Pointer: fault.Pointer, Detail: detail, Fix: fix})
	}
}

func (f *faults) duplicate(path, label string) {
	f.add(CodeDuplicateField, path, "The name "+label+" is given twice.", "Give each name once.")
}

// quoteShort is text for a person: quoted, and cut after 64 bytes.
func quoteShort(text []byte) string {
	if len(text) > 64 {
		return strconv.Quote(string(text[:64])) + "…"
	}
	return strconv.Quote(string(text))
}

// entryPointer is the RFC 6901 pointer of a member of an entry;
// path is "" or "/name" or "/error/name".
func entryPointer(index int, path string) string {
	return "/logs/" + strconv.Itoa(index) + path
}

// pointerToken is a name as one reference token of RFC 6901, with its slash.
func pointerToken(name string) string {
	return "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// memberPointer is the RFC 6901 pointer of a member of parent. A
// name that is too long is left out.
func memberPointer(parent string, name []byte) string {
	if len(name) > 256 {
		return parent
	}
	return parent + pointerToken(string(name))
}

// Sizes count UTF-8 bytes; a limit is inclusive.
const (
	kb = 1 << 10

	// MaxDepth is how deep arrays and objects may nest, the
	// body's own object being the first level.
	MaxDepth = 128
)

// Limits is how large a body's parts may be.
type Limits struct {
	Entries  int // entries in one request
	Message  int // bytes of the decoded message of an entry
	Metadata int // bytes of the compact JSON of an entry's metadata
	Entry    int // bytes of the compact JSON of a whole entry
	Faults   int // how many faults are listed; the others are only counted
}

// DefaultLimits are the limits that the interface promises.
func DefaultLimits() Limits {
	return Limits{Entries: 1000, Message: 10 * kb, Metadata: 100 * kb, Entry: 512 * kb, Faults: 100}
}
