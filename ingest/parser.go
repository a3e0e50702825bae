package ingest

import (
	"bytes"
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
	limits  Limits
	scan    scanner
	entries entryParser
	scratch []byte

	keyed   bool // the caller is known: the member api_key is ignored
	seen    uint // members of the body
	names   names
	failure *BodyError
	batch   Batch
}

// NewParser returns a Parser for limits.
func NewParser(limits Limits) *Parser {
	p := &Parser{limits: limits}
	p.entries = newEntryParser(&p.scan, limits)
	return p
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
	p.keyed, p.seen, p.failure = keyed, 0, nil
	p.scan.start(body)
	p.names.reset()
	p.entries.faults.reset()
	p.batch = Batch{Accepted: p.batch.Accepted[:0]}
	if p.body() < 0 {
		p.invalid("")
	}
	p.batch.Faults, p.batch.FaultsTruncated = p.entries.faults.list, p.entries.faults.truncated
	p.batch.Rejections = p.entries.faults.rejections.list
	if p.failure != nil {
		return &p.batch, p.scan.near(p.failure)
	}
	return &p.batch, nil
}

func (p *Parser) body() int {
	i := p.scan.skip(0)
	isObject := p.scan.text[i] == '{'
	if isObject {
		i = p.members(i)
	} else {
		i = p.scan.value(i, 1)
	}
	if i < 0 {
		return i
	}
	if i = p.scan.skip(i); i < p.scan.size {
		return p.scan.fail(i, "there is data after the body's end")
	}
	if !isObject {
		p.refuse(0, CodeInvalidType, "", "The body is not an object.", `Send an object with "logs", an array of entries.`)
	} else if twice := p.names.close(0); twice != nil {
		p.duplicate(i, twice)
	} else if p.seen&(1<<bodyLogs) == 0 {
		p.refuse(i, CodeMissingField, "/logs", `The body has no "logs".`, `Send an object with "logs", an array of entries.`)
	}
	return i
}

func (p *Parser) members(i int) int {
	i, more := p.scan.first(i, '}')
	for more {
		start := i
		if i = p.scan.name(i); i < 0 {
			return i
		}
		member := p.member(p.scan.inside(start, i).decode(&p.scratch))
		if i = p.scan.colon(i); i < 0 {
			return i
		}
		if i = p.field(member, i); i < 0 {
			return i
		}
		i, more = p.scan.next(i, '}')
	}
	return i
}

// Members of the body.
const (
	bodyLogs = 1 + iota
	bodyAPIKey
)

// member is the number of a member, 0 for an unknown one, whose name is kept.
func (p *Parser) member(name []byte) int {
	switch string(name) {
	case "logs":
		return bodyLogs
	case "api_key":
		return bodyAPIKey
	}
	if p.failure == nil {
		p.names.add(name)
	}
	return 0
}

// field reads a member of the body. Members have no order: when one is at
// fault the others are still checked, because of api_key.
func (p *Parser) field(member, i int) int {
	twice := p.seen&(1<<member) != 0
	if member != 0 {
		p.seen |= 1 << member
	}
	switch {
	case twice:
		p.duplicate(i, []byte([...]string{bodyLogs: "logs", bodyAPIKey: "api_key"}[member]))
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
	return p.scan.value(i, 2)
}

func (p *Parser) duplicate(i int, name []byte) {
	p.refuse(i, CodeDuplicateField, memberPointer("", name), "The body has "+quoteShort(name)+" twice.", "Give each name once.")
}

// apiKey reads the deprecated member. It never gets into an entry or an error.
func (p *Parser) apiKey(i int) int {
	start, null := i, isNull(p.scan.text[i:])
	if i = p.scan.value(i, 2); i < 0 || null {
		return i
	}
	p.batch.HasAPIKey = true
	if p.scan.text[start] == '"' {
		p.batch.APIKey = string(p.scan.inside(start, i).decode(&p.scratch))
	}
	return i
}

// logs reads the array of entries.
func (p *Parser) logs(i int) int {
	if p.scan.text[i] != '[' {
		return p.notAnArray(i)
	}
	i, more := p.scan.first(i, ']')
	if !more {
		p.refuse(i-1, CodeEmptyBatch, "/logs", `"logs" is empty.`, "Send at least one entry.")
		return i
	}
	first, kept := i, &p.scan.kept
	for kept.end = i; more; {
		if p.batch.Entries == p.limits.Entries {
			return p.batchTooLarge(i)
		}
		line := kept.end
		if i = p.entries.read(i, p.batch.Entries); i >= 0 {
			i, more = p.scan.next(i, ']')
		}
		if i < 0 {
			return p.invalid(entryPointer(p.batch.Entries, ""))
		}
		p.finishEntry(line, first)
	}
	p.batch.Lines = p.scan.text[first:kept.end:kept.end]
	return i
}

// finishEntry keeps the entry that was moved to line, or rejects
// it. It runs after the delimiter behind the entry is read,
// because the newline may replace it.
func (p *Parser) finishEntry(line, first int) {
	kept := &p.scan.kept
	size := int64(kept.end - line)
	p.batch.Entries++
	if p.entries.faults.faulty {
		p.batch.Rejected++
		p.batch.RejectedBytes += size
		p.entries.faults.rejections.illustrate(p.batch.Entries-1, kept.text[line:kept.end])
		kept.end = line
		return
	}
	kept.text[kept.end] = '\n'
	kept.end++
	p.batch.Bytes += size
	p.batch.Accepted = append(p.batch.Accepted, Line{End: kept.end - first, HasError: p.entries.entry.hasError})
}

func (p *Parser) notAnArray(i int) int {
	null, got := isNull(p.scan.text[i:]), jsonKind(p.scan.text[i])
	after := p.scan.value(i, 2)
	switch {
	case after < 0:
	case null:
		p.refuse(i, CodeMissingField, "/logs", `"logs" is null.`, `Send "logs" as an array of entries.`)
	default:
		p.refuse(i, CodeInvalidType, "/logs", `"logs" is `+got+", not an array.", `Send "logs" as an array of entries.`)
	}
	return after
}

// batchTooLarge refuses the body for the entry at i, and passes
// that and the ones behind it.
func (p *Parser) batchTooLarge(i int) int {
	limit := strconv.Itoa(p.limits.Entries)
	p.refuse(i, CodeBatchTooLarge, "/logs", "The body has more than "+limit+" entries.", "Send at most "+limit+" entries in one request.")
	if p.keyed {
		return -1
	}
	return p.scan.elements(i, 2)
}

// invalid refuses the whole body because it is not JSON in what pointer names.
func (p *Parser) invalid(pointer string) int {
	if p.failure == nil {
		p.failure = p.scan.invalid(pointer)
	}
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

func (n *names) reset() { n.text, n.spans = n.text[:0], n.spans[:0] }

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
