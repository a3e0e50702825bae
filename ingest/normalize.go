package ingest

import (
	"bytes"
	"io"
	"strconv"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// A Normalizer rewrites bodies as programs naturally send them to bodies
// that a Parser accepts: an array of entries, an entry alone, or an entry on
// each line (NDJSON) as body; common names of levels, in any case; times
// with an offset, or as numbers since 1970; a stack trace as one text.
//
// What it does not know it leaves as it is, for the Parser to judge.
type Normalizer struct {
	scan    scanner
	to      io.Writer
	failed  error // of to
	from    int   // what of the text is still to be written
	scratch []byte
	changes Changes
	marking bool // of the client's entries
	marked  bool // the entry
}

// Changes is what a Normalizer changed.
type Changes struct {
	Entries     int // with at least one of these:
	Levels      int
	Timestamps  int
	StackTraces int
}

func (c Changes) members() int { return c.Levels + c.Timestamps + c.StackTraces }

// Normalize writes the body, rewritten. Entries of an untrusted client get
// MarkUntrusted in their metadata. It overwrites up to Padding bytes behind
// the body. The error is a *BodyError where the body is not JSON, else that
// of the writer.
func (n *Normalizer) Normalize(body []byte, untrusted bool, to io.Writer) (Changes, error) {
	*n = Normalizer{to: to, scratch: n.scratch, marking: untrusted}
	n.scan.start(body)
	entries := 0
	if i := n.body(n.scan.skip(0), &entries); i < 0 {
		return n.changes, n.scan.near(n.scan.invalid(entryPointer(max(entries-1, 0), "")))
	}
	n.copyTo(n.scan.size)
	return n.changes, n.failed
}

func (n *Normalizer) body(i int, entries *int) int {
	switch n.scan.text[i] {
	case '[':
		n.write(`{"logs":`)
		if i = n.array(i, entries); i < 0 {
			return i
		}
		n.copyTo(i)
		n.write("}")
	case '{':
		if !n.hasLogs(i) {
			return n.lines(i, entries)
		}
		i = n.object(i, 2, func(name []byte, i int) int {
			if string(name) == "logs" && n.scan.text[i] == '[' {
				return n.array(i, entries)
			}
			return n.scan.value(i, 2)
		})
	default:
		return n.scan.size
	}
	if i < 0 {
		return i
	}
	if i = n.scan.skip(i); i < n.scan.size {
		return n.scan.fail(i, "there is data after the body's end")
	}
	return i
}

// hasLogs reports whether an object is a body and no entry: it has logs. It
// most often comes first.
func (n *Normalizer) hasLogs(i int) bool {
	i, more := n.scan.first(i, '}')
	for more {
		start := i
		if i = n.scan.name(i); i < 0 {
			return false
		}
		if string(n.scan.inside(start, i).decode(&n.scratch)) == "logs" {
			return true
		}
		if i = n.scan.colon(i); i < 0 {
			return false
		}
		if i = n.scan.value(i, 2); i < 0 {
			return false
		}
		i, more = n.scan.next(i, '}')
	}
	return false
}

// lines rewrites entries that follow each other.
func (n *Normalizer) lines(i int, entries *int) int {
	n.write(`{"logs":[`)
	for ; i < n.scan.size; i = n.scan.skip(i) {
		if *entries > 0 {
			n.write(",")
		}
		n.from = i
		*entries++
		if i = n.entry(i); i < 0 {
			return i
		}
		n.copyTo(i)
	}
	n.from = i
	n.write("]}")
	return i
}

func (n *Normalizer) array(i int, entries *int) int {
	i, more := n.scan.first(i, ']')
	for more {
		*entries++
		if i = n.entry(i); i < 0 {
			return i
		}
		i, more = n.scan.next(i, ']')
	}
	return i
}

func (n *Normalizer) entry(i int) int {
	if n.scan.text[i] != '{' {
		return n.scan.value(i, 3)
	}
	start, before := i, n.changes.members()
	n.marked = !n.marking
	if i = n.object(i, 4, n.entryMember); i >= 0 && !n.marked {
		n.insert(start, i, `"`+entryfield.Metadata+`":{`+untrustedMember+`}`)
	}
	if n.changes.members() > before {
		n.changes.Entries++
	}
	return i
}

// object passes an object by its members. value passes the value of one.
func (n *Normalizer) object(i, depth int, value func(name []byte, i int) int) int {
	if depth > MaxDepth {
		return n.scan.fail(i, tooDeep)
	}
	i, more := n.scan.first(i, '}')
	for more {
		start := i
		if i = n.scan.name(i); i < 0 {
			return i
		}
		name := n.scan.inside(start, i).decode(&n.scratch)
		if i = n.scan.colon(i); i < 0 {
			return i
		}
		if i = value(name, i); i < 0 {
			return i
		}
		i, more = n.scan.next(i, '}')
	}
	return i
}

func (n *Normalizer) entryMember(name []byte, i int) int {
	switch first := n.scan.text[i]; {
	case string(name) == entryfield.Timestamp && first == '"':
		return n.text(i, n.timestamp)
	case string(name) == entryfield.Timestamp && isDigit(first):
		return n.epoch(i)
	case string(name) == entryfield.Level && first == '"':
		return n.text(i, n.level)
	case string(name) == entryfield.Error && first == '{':
		return n.object(i, 5, n.errorMember)
	case string(name) == entryfield.Metadata && n.marking:
		return n.metadata(i)
	}
	return n.scan.value(i, 4)
}

// MarkUntrusted is the member of metadata, true, of entries from clients that
// anybody may be: the pages of browsers.
const MarkUntrusted = "untrusted_client"

const untrustedMember = `"` + MarkUntrusted + `":true`

// metadata marks the metadata of an entry, whatever it says itself.
func (n *Normalizer) metadata(i int) int {
	start, marked := i, false
	n.marked = true
	if n.scan.text[i] != '{' {
		if i = n.scan.value(i, 4); i >= 0 && isNull(n.scan.text[start:]) {
			n.replace(start, i, []byte("{"+untrustedMember+"}"))
		}
		return i
	}
	i = n.object(i, 5, func(name []byte, i int) int {
		start, isMark := i, string(name) == MarkUntrusted
		if i = n.scan.value(i, 5); i >= 0 && isMark {
			n.replace(start, i, []byte("true"))
			marked = true
		}
		return i
	})
	if i >= 0 && !marked {
		n.insert(start, i, untrustedMember)
	}
	return i
}

// insert writes a member at the end of an object that was passed.
func (n *Normalizer) insert(start, end int, member string) {
	n.copyTo(end - 1)
	if n.scan.text[n.scan.skip(start+1)] != '}' {
		n.write(",")
	}
	n.write(member)
}

func (n *Normalizer) errorMember(name []byte, i int) int {
	if string(name) == entryfield.ErrorStackTrace && n.scan.text[i] == '"' {
		return n.text(i, n.stackTrace)
	}
	return n.scan.value(i, 5)
}

// text passes a string, and replaces it unless replacement returns false.
func (n *Normalizer) text(i int, replacement func(text quoted) ([]byte, bool)) int {
	start := i
	if i = n.scan.str(i); i < 0 {
		return i
	}
	if instead, changed := replacement(n.scan.inside(start, i)); changed {
		n.replace(start, i, instead)
	}
	return i
}

func (n *Normalizer) epoch(i int) int {
	start := i
	if i = n.scan.number(i); i < 0 {
		return i
	}
	if at, ok := parseEpoch(n.scan.text[start:i]); ok {
		n.changes.Timestamps++
		n.replace(start, i, n.quotedInstant(at))
	}
	return i
}

func (n *Normalizer) timestamp(text quoted) ([]byte, bool) {
	plain := text.decode(&n.scratch)
	if _, ok := ParseInstant(plain); ok {
		return nil, false
	}
	at, ok := ReadInstant(plain)
	if !ok {
		return nil, false
	}
	n.changes.Timestamps++
	return n.quotedInstant(at), true
}

func (n *Normalizer) quotedInstant(at Instant) []byte {
	n.scratch = append(at.AppendText(append(n.scratch[:0], '"')), '"')
	return n.scratch
}

// levelNames are what loggers call levels.
var levelNames = map[string]Severity{
	"trace": SeverityDebug, "verbose": SeverityDebug, "debug": SeverityDebug, "dbg": SeverityDebug,
	"info": SeverityInfo, "information": SeverityInfo, "informational": SeverityInfo, "notice": SeverityInfo,
	"warn": SeverityWarn, "warning": SeverityWarn,
	"error": SeverityError, "err": SeverityError, "severe": SeverityError,
	"fatal": SeverityFatal, "critical": SeverityFatal, "crit": SeverityFatal, "alert": SeverityFatal, "emerg": SeverityFatal,
	"emergency": SeverityFatal, "panic": SeverityFatal,
}

const longestLevel = len("informational")

// LevelNamed is the severity that loggers give a name, in any case.
func LevelNamed(name []byte) (Severity, bool) {
	var lower [longestLevel]byte
	if len(name) > longestLevel {
		return SeverityNone, false
	}
	for i, c := range name {
		if c-'A' <= 'Z'-'A' {
			c |= 0x20
		}
		lower[i] = c
	}
	level, known := levelNames[string(lower[:len(name)])]
	return level, known
}

func (n *Normalizer) level(text quoted) ([]byte, bool) {
	plain := text.decode(&n.scratch)
	level, known := LevelNamed(plain)
	if !known || string(plain) == level.String() {
		return nil, false
	}
	n.changes.Levels++
	return append(append(append(n.scratch[:0], '"'), level.String()...), '"'), true
}

// stackTrace divides a text at its line feeds, which are escaped.
func (n *Normalizer) stackTrace(text quoted) ([]byte, bool) {
	n.changes.StackTraces++
	array := append(n.scratch[:0], '[')
	for rest, more := text.raw, true; more; {
		var line []byte
		line, rest, more = cutEscapedLine(rest)
		if line = bytes.TrimSuffix(line, []byte(`\r`)); len(line) == 0 {
			continue
		}
		if len(array) > 1 {
			array = append(array, ',')
		}
		array = append(append(append(array, '"'), line...), '"')
	}
	n.scratch = append(array, ']')
	return n.scratch, true
}

// cutEscapedLine cuts the inside of a string after its first line.
func cutEscapedLine(raw []byte) (line, rest []byte, more bool) {
	for i := 0; i < len(raw)-1; i++ {
		if raw[i] != '\\' {
			continue
		}
		switch escaped := raw[i+1:]; {
		case escaped[0] == 'n':
			return raw[:i], escaped[1:], true
		case escaped[0] == 'u' && hexUnit(escaped[1:]) == '\n':
			return raw[:i], escaped[5:], true
		}
		i++
	}
	return raw, nil, false
}

func (n *Normalizer) replace(start, end int, instead []byte) {
	n.copyTo(start)
	n.pass(instead)
	n.from = end
}

func (n *Normalizer) copyTo(i int) {
	n.pass(n.scan.text[n.from:i])
	n.from = i
}

func (n *Normalizer) write(text string) { n.pass([]byte(text)) }

// pass writes, until a write fails.
func (n *Normalizer) pass(text []byte) {
	if n.failed == nil {
		_, n.failed = n.to.Write(text)
	}
}

// ReadInstant reads a time as programs print it: with any offset, or as a
// number since 1970.
func ReadInstant(text []byte) (Instant, bool) {
	if at, ok := parseOffset(text); ok {
		return at, true
	}
	return parseEpoch(text)
}

// parseOffset reads a time with an offset from UTC as languages print it:
// +02:00, +0200, +02 or Z, T or a space before the time of day, and perhaps
// one before the offset.
func parseOffset(text []byte) (Instant, bool) {
	const local = len("2006-01-02T15:04:05")
	if len(text) < local || len(text) > local+len(".999999999 +00:00") {
		return Instant{}, false
	}
	at := bytes.LastIndexAny(text, "+-zZ")
	if at < local {
		return Instant{}, false
	}
	offset, ok := parseZone(text[at:])
	day := append(make([]byte, 0, len(text)), bytes.TrimSuffix(text[:at], []byte(" "))...)
	if day[10] == ' ' || day[10] == 't' {
		day[10] = 'T'
	}
	instant, isTime := parseLocal(day)
	moved := Instant{Seconds: instant.Seconds - int64(offset), Nanos: instant.Nanos}
	return moved, ok && isTime && moved.Seconds >= minSeconds && moved.Seconds <= maxSeconds
}

// parseZone reads an offset from UTC, in seconds.
func parseZone(text []byte) (seconds int, ok bool) {
	if len(text) == 1 {
		return 0, text[0]|0x20 == 'z'
	}
	digits := bytes.Replace(text[1:], []byte(":"), nil, 1)
	if len(digits) == len("02") {
		digits = append(digits, "00"...)
	}
	if len(digits) != len("0200") || text[0] != '+' && text[0] != '-' || len(text) > len("+02:00") || len(text) == len("+02:00") && text[3] != ':' {
		return 0, false
	}
	hours, minutes := twoDigits(digits[:2]), twoDigits(digits[2:])
	if uint(hours) > 23 || uint(minutes) > 59 {
		return 0, false
	}
	if seconds = hours*3600 + minutes*60; text[0] == '-' {
		seconds = -seconds
	}
	return seconds, true
}

// Before these numbers, one since 1970 counts seconds, milliseconds or
// microseconds, and from the last on nanoseconds: all in the years to 5138.
const (
	secondsBelow = 1e11
	millisBelow  = 1e14
	microsBelow  = 1e17
)

// parseEpoch reads a number of seconds, milliseconds, microseconds or
// nanoseconds since 1970, by its size, perhaps with a fraction.
func parseEpoch(text []byte) (Instant, bool) {
	whole, part, hasPart := bytes.Cut(text, []byte("."))
	for _, c := range whole {
		if !isDigit(c) {
			return Instant{}, false
		}
	}
	n, err := strconv.ParseInt(string(whole), 10, 64)
	if err != nil || len(bytes.Trim(part, "0123456789")) > 0 {
		return Instant{}, false
	}
	below := uint32(0) // billionths of a unit
	if part = part[:min(len(part), 9)]; hasPart {
		var ok bool
		if below, ok = fraction(append([]byte("."), part...)); !ok {
			return Instant{}, false
		}
	}
	unit := int64(1) // in nanoseconds
	switch {
	case n < secondsBelow:
		unit = 1e9
	case n < millisBelow:
		unit = 1e6
	case n < microsBelow:
		unit = 1e3
	}
	inSecond := 1e9 / unit
	nanos := n%inSecond*unit + int64(below)*unit/1e9
	return Instant{Seconds: n / inSecond, Nanos: uint32(nanos)}, true //nolint:gosec // less than a second
}
