package ingest

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
)

// Bounds of a body's unknown members, so that they can't fill the memory.
const (
	maxBodyNames     = 1 << 16
	maxBodyNameBytes = 1 << 20
)

// A Parser reads bodies, one at a time, and reuses its memory.
//
// It reads the text once. What is not JSON by RFC 8259 fails the whole
// body; JSON that breaks a rule for entries rejects that entry. Nothing is
// decoded and encoded again: a valid entry is moved to the front of the
// body, without white space, as it was sent.
type Parser struct {
	limits Limits
	keyed  bool // the caller is known: the member api_key is ignored

	text    []byte // the body and its padding
	size    int    // length of the body
	escaped bool   // the string read last holds a backslash
	failure *BodyError

	keeping bool // white space is being left out
	run     int  // start of the text that is not yet moved
	kept    int  // where it is moved to; never behind run

	index   int // of the entry being read, or -1
	entry   entryState
	seen    uint // members of the body
	names   names
	scratch []byte
	line    []byte

	batch Batch
}

// NewParser returns a Parser for limits.
func NewParser(limits Limits) *Parser {
	limits.Faults = max(limits.Faults, 1)
	return &Parser{limits: limits}
}

// Parse reads a body. It overwrites body and up to Padding bytes behind
// it; a body without that spare capacity is copied. The batch is never
// nil. The error, a *BodyError, is the first fault. The batch has api_key
// even then, if the text is JSON up to there.
func (p *Parser) Parse(body []byte) (*Batch, error) { return p.parse(body, false) }

// ParseKeyed is Parse of a body whose api_key does not matter: it stops
// where nothing behind can change the error.
func (p *Parser) ParseKeyed(body []byte) (*Batch, error) { return p.parse(body, true) }

func (p *Parser) parse(body []byte, keyed bool) (*Batch, error) {
	p.keyed = keyed
	p.start(body)
	p.batch = Batch{Faults: p.batch.Faults[:0], Accepted: p.batch.Accepted[:0]}
	p.body()
	if p.failure != nil {
		return &p.batch, p.failure
	}
	return &p.batch, nil
}

func (p *Parser) start(body []byte) {
	p.size = len(body)
	p.text = append(body, make([]byte, Padding)...)
	p.failure, p.keeping, p.index, p.seen = nil, false, -1, 0
	p.names = names{text: p.names.text[:0], spans: p.names.spans[:0]}
}

func (p *Parser) body() {
	i := p.skip(0)
	if p.text[i] != '{' {
		p.notAnObject(i)
		return
	}
	if i = p.fields(i, bodyMember, bodyField); i < 0 {
		return
	}
	if i = p.skip(i); i < p.size {
		p.fail(i, "there is data after the body's end")
		return
	}
	if twice := p.names.close(0); twice != nil {
		p.duplicateInBody(i, twice)
	} else if p.seen&(1<<bodyLogs) == 0 {
		p.refuse(i, CodeMissingField, "/logs", `The body has no "logs".`, `Send an object with "logs", an array of entries.`)
	}
}

func (p *Parser) notAnObject(i int) {
	if i = p.value(i, 1); i < 0 {
		return
	}
	if i = p.skip(i); i < p.size {
		p.fail(i, "there is data after the body's end")
		return
	}
	p.refuse(0, CodeInvalidType, "", "The body is not an object.", `Send an object with "logs", an array of entries.`)
}

// fields reads an object. known maps an unescaped name to a member's
// number, 0 for others; it runs before the white space after the name,
// which may move the text. field gets that number and the value's
// offset, and returns the offset after it.
func (p *Parser) fields(i int, known func(name []byte) int, field func(p *Parser, member, i int) int) int {
	i = p.skip(i + 1)
	if p.text[i] == '}' {
		return i + 1
	}
	for {
		start := i + 1
		p.escaped = false
		if i = p.quotedName(i); i < 0 {
			return i
		}
		member := p.member(known, start, i-1)
		if i = p.colon(i); i < 0 {
			return i
		}
		if i = field(p, member, i); i < 0 {
			return i
		}
		i = p.skip(i)
		if p.text[i] == '}' {
			return i + 1
		}
		if i = p.comma(i, "an object"); i < 0 {
			return i
		}
	}
}

// member is the number of a member by name; an unknown name is kept.
func (p *Parser) member(known func(name []byte) int, start, end int) int {
	name := p.unescaped(p.text[start:end])
	member := known(name)
	if member == 0 && p.failure == nil && (p.index < 0 || !p.oversized(end)) {
		p.names.add(name)
	}
	return member
}

// Members of the body.
const (
	bodyLogs = 1 + iota
	bodyAPIKey
)

func bodyMember(name []byte) int {
	switch string(name) {
	case "logs":
		return bodyLogs
	case "api_key":
		return bodyAPIKey
	}
	return 0
}

// bodyField reads a member of the body. Members have no order: when one is at
// fault the others are still checked, because of api_key.
func bodyField(p *Parser, member, i int) int {
	twice := p.seen&(1<<member) != 0
	if member != 0 {
		p.seen |= 1 << member
	}
	switch {
	case twice:
		p.duplicateInBody(i, []byte([...]string{bodyLogs: "logs", bodyAPIKey: "api_key"}[member]))
	case member == bodyAPIKey:
		return p.apiKey(i)
	case member == bodyLogs && p.failure == nil:
		return p.logs(i)
	case len(p.names.spans) > maxBodyNames || len(p.names.text) > maxBodyNameBytes:
		p.refuse(i, CodeTooManyFields, "", `The body has too many members beside "logs".`, `Send only "logs".`)
	}
	if p.keyed && p.failure != nil {
		return -1
	}
	return p.value(i, 2)
}

func (p *Parser) duplicateInBody(i int, name []byte) {
	p.refuse(i, CodeDuplicateField, memberPointer("", name), "The body has "+quoteShort(name)+" twice.", "Give each name once.")
}

// apiKey reads the deprecated member. It never gets into an entry or an error.
func (p *Parser) apiKey(i int) int {
	start := i + 1
	p.escaped = false
	quoted, null := p.text[i] == '"', p.isNull(i)
	if i = p.value(i, 2); i < 0 || null {
		return i
	}
	p.batch.HasAPIKey = true
	if quoted {
		p.batch.APIKey = string(p.unescaped(p.text[start : i-1]))
	}
	return i
}

// logs reads the array of entries.
func (p *Parser) logs(i int) int {
	if p.text[i] != '[' {
		return p.notAnArray(i)
	}
	i = p.skip(i + 1)
	if p.text[i] == ']' {
		p.refuse(i, CodeEmptyBatch, "/logs", `"logs" is empty.`, "Send at least one entry.")
		return i + 1
	}
	first := i
	for p.kept = i; ; {
		if p.batch.Entries == p.limits.Entries {
			return p.batchTooLarge(i)
		}
		line := p.kept
		if i = p.readEntry(i); i < 0 {
			return i
		}
		last := p.text[i] == ']'
		if !last && p.text[i] != ',' {
			return p.fail(i, "a comma is missing between entries, or the array's end")
		}
		p.finishEntry(line, first)
		if i++; last {
			p.batch.Lines = p.text[first:p.kept:p.kept]
			p.index = -1
			return i
		}
		i = p.skip(i)
	}
}

// finishEntry keeps the entry that was moved to line, or rejects
// it. It runs after the delimiter behind the entry is read,
// because the newline may replace it.
func (p *Parser) finishEntry(line, first int) {
	p.batch.Entries++
	if size := p.kept - line; size > p.limits.Entry {
		p.fault(CodeEntryTooLarge, "", fmt.Sprintf("The entry has %d bytes of JSON without white space; the limit is %d.", size, p.limits.Entry),
			"Send less in one entry.")
	}
	if p.entry.faulty {
		p.batch.Rejected++
		p.batch.RejectedBytes += int64(p.kept - line)
		p.kept = line
		return
	}
	p.text[p.kept] = '\n'
	p.kept++
	p.batch.Bytes += int64(p.kept - line - 1)
	p.batch.Accepted = append(p.batch.Accepted, Line{End: p.kept - first, HasError: p.entry.hasError})
}

func (p *Parser) notAnArray(i int) int {
	null, kind := p.isNull(i), p.kind(i)
	after := p.value(i, 2)
	switch {
	case after < 0:
	case null:
		p.refuse(i, CodeMissingField, "/logs", `"logs" is null.`, `Send "logs" as an array of entries.`)
	default:
		p.refuse(i, CodeInvalidType, "/logs", `"logs" is `+kind+", not an array.", `Send "logs" as an array of entries.`)
	}
	return after
}

// batchTooLarge refuses the body for the entry at i, and passes
// that and the ones behind it.
func (p *Parser) batchTooLarge(i int) int {
	limit := strconv.Itoa(p.limits.Entries)
	p.refuse(i, CodeBatchTooLarge, "/logs", "The body has more than "+limit+" entries.", "Send at most "+limit+" entries in one request.")
	p.index = -1
	if p.keyed {
		return -1
	}
	return p.elements(i, 2)
}

// keep moves the text from run to end to its place.
func (p *Parser) keep(end int) {
	if p.run != p.kept {
		copy(p.text[p.kept:], p.text[p.run:end])
	}
	p.kept += end - p.run
	p.run = end
}

// place returns where the byte at i goes in the kept text.
func (p *Parser) place(i int) int { return p.kept + i - p.run }

// unescaped returns the string read last, decoded. It may be the
// Parser's scratch memory.
func (p *Parser) unescaped(raw []byte) []byte {
	if !p.escaped {
		return raw
	}
	p.scratch = unescape(p.scratch[:0], raw)
	return p.scratch
}

// fail makes the whole body unacceptable because it is not JSON. It
// returns -1, which every caller passes on.
func (p *Parser) fail(i int, what string) int {
	if i >= p.size {
		what, i = "the body ends too early", p.size
	}
	pointer := ""
	if p.index >= 0 {
		pointer = entryPointer(p.index, "")
	}
	detail := fmt.Sprintf("The body is not valid JSON: %s, at byte %d.", what, i)
	p.refuse(i, CodeInvalidJSON, pointer, detail, "Send JSON as RFC 8259 defines it, in UTF-8.")
	return -1
}

// refuse rejects the whole body. The first reason counts.
func (p *Parser) refuse(i int, code Code, pointer, detail, fix string) {
	if p.failure == nil {
		p.failure = &BodyError{Code: code, Pointer: pointer, Offset: i, Detail: detail, Fix: fix}
	}
}

// names holds the unknown names of an object's members, to find duplicates.
// Objects nest: an inner object's names are on top of the outer one's.
type names struct {
	text  []byte // all names, unescaped
	spans []span
}

type span struct{ start, end int }

func (n *names) add(name []byte) {
	start := len(n.text)
	n.text = append(n.text, name...)
	n.spans = append(n.spans, span{start, len(n.text)})
}

// close drops the names from base on and returns a duplicate, or
// nil. It is valid until the next add.
func (n *names) close(base int) []byte {
	mine := n.spans[base:]
	if len(mine) == 0 {
		return nil
	}
	start := mine[0].start
	twice := n.twice(mine)
	n.spans = n.spans[:base]
	n.text = n.text[:start]
	return twice
}

func (n *names) twice(mine []span) []byte {
	if len(mine) < 2 {
		return nil
	}
	compare := func(a, b span) int { return bytes.Compare(n.text[a.start:a.end], n.text[b.start:b.end]) }
	slices.SortFunc(mine, compare)
	for i := 1; i < len(mine); i++ {
		if compare(mine[i-1], mine[i]) == 0 {
			return n.text[mine[i].start:mine[i].end:mine[i].end]
		}
	}
	return nil
}
