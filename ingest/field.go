package ingest

import (
	"fmt"
)

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
