package ingest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

// A scanner checks that a text is JSON by RFC 8259. Its methods take the
// offset of what they check and return the offset behind it, or -1 once
// they failed.
type scanner struct {
	text    []byte // with its padding
	size    int    // without it
	escaped bool   // the string read last holds a backslash
	kept    compactor

	failure  string // why the text is not JSON
	failedAt int
}

// start begins a text. It overwrites up to Padding bytes behind it.
func (s *scanner) start(text []byte) {
	s.size = len(text)
	s.text = append(text, make([]byte, Padding)...)
	s.kept = compactor{text: s.text}
	s.failure = ""
}

func (s *scanner) fail(i int, what string) int {
	s.failure, s.failedAt = what, i
	if i >= s.size {
		s.failure, s.failedAt = "the body ends too early", s.size
	}
	return -1
}

// invalid is the fault of a body with this text.
func (s *scanner) invalid(pointer string) *BodyError {
	return &BodyError{
		Code: CodeInvalidJSON, Pointer: pointer, Offset: s.failedAt,
		Detail: fmt.Sprintf("The body is not valid JSON: %s, at byte %d.", s.failure, s.failedAt), Fix: "Send JSON as RFC 8259 defines it, in UTF-8.",
	}
}

// near adds the text around its offset to a fault, which must not be passed
// yet. What of an entry is before it may have moved.
func (s *scanner) near(e *BodyError) *BodyError {
	const side = SampleBytes/2 + sampleMargin
	moved, run := s.text[:s.kept.end], s.text[min(s.kept.run, e.Offset):e.Offset]
	run = run[max(0, len(run)-side):]
	moved = moved[max(0, len(moved)-(side-len(run))):]
	end := min(s.size, e.Offset+side)
	e.Near, e.Cut = hideCredentials(slices.Concat(moved, run, s.text[e.Offset:end])), end < s.size
	if len(moved)+len(run) == side {
		e.Near, e.Cut = e.Near[min(sampleMargin, len(e.Near)):], true
	}
	return e
}

// value checks a value. depth is its level if it is an array or an object.
func (s *scanner) value(i, depth int) int {
	switch s.text[i] {
	case '"':
		return s.str(i)
	case '{':
		return s.object(i, depth)
	case '[':
		return s.array(i, depth)
	case 't':
		return s.word(i, "true")
	case 'n':
		return s.word(i, "null")
	case 'f':
		return s.word(i, "false")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return s.number(i)
	}
	return s.fail(i, "a value is missing or malformed")
}

// object checks an object of which nothing but its JSON matters.
func (s *scanner) object(i, depth int) int {
	if depth > MaxDepth {
		return s.fail(i, tooDeep)
	}
	i, more := s.first(i, '}')
	for more {
		if i = s.name(i); i < 0 {
			return i
		}
		if i = s.colon(i); i < 0 {
			return i
		}
		if i = s.value(i, depth+1); i < 0 {
			return i
		}
		i, more = s.next(i, '}')
	}
	return i
}

// array checks an array of which nothing but its JSON matters.
func (s *scanner) array(i, depth int) int {
	if depth > MaxDepth {
		return s.fail(i, tooDeep)
	}
	i, more := s.first(i, ']')
	if !more {
		return i
	}
	return s.elements(i, depth)
}

// elements checks an array from an element on.
func (s *scanner) elements(i, depth int) int {
	for more := true; more; {
		if i = s.value(i, depth+1); i < 0 {
			return i
		}
		i, more = s.next(i, ']')
	}
	return i
}

const tooDeep = "arrays and objects nest more than 128 levels deep"

// first passes the bracket that opens an array or an object. It returns
// the offset of the first element, or false and that behind the end.
func (s *scanner) first(i int, end byte) (int, bool) {
	if i = s.skip(i + 1); s.text[i] == end {
		return i + 1, false
	}
	return i, true
}

// next passes what follows an element. It returns the offset of the
// next element, or false and that behind the end.
func (s *scanner) next(i int, end byte) (int, bool) {
	switch i = s.skip(i); s.text[i] {
	case ',':
		return s.skip(i + 1), true
	case end:
		return i + 1, false
	}
	if end == '}' {
		return s.fail(i, "a comma is missing in an object, or its end"), false
	}
	return s.fail(i, "a comma is missing in an array, or its end"), false
}

// name checks the name of a member.
func (s *scanner) name(i int) int {
	if s.text[i] != '"' {
		return s.fail(i, "a name in double quotes is missing")
	}
	return s.str(i)
}

// colon passes what follows a name.
func (s *scanner) colon(i int) int {
	if i = s.skip(i); s.text[i] != ':' {
		return s.fail(i, "a colon is missing after a name")
	}
	return s.skip(i + 1)
}

// word checks one of the three literal names.
func (s *scanner) word(i int, want string) int {
	after := i + len(want)
	if after > s.size || string(s.text[i:after]) != want {
		return s.fail(i, "a value is missing or malformed")
	}
	return after
}

// isNull reports whether a value begins like null.
func isNull(text []byte) bool {
	return binary.LittleEndian.Uint32(text) == 'n'|'u'<<8|'l'<<16|'l'<<24
}

// jsonKind names the kind of a value, by its first byte, for a person.
func jsonKind(first byte) string {
	switch first {
	case '"':
		return "a string"
	case '{':
		return "an object"
	case '[':
		return "an array"
	case 't', 'f':
		return "true or false"
	case 'n':
		return "null"
	}
	return "a number"
}

// number checks a number: -? int frac? exp?.
func (s *scanner) number(i int) int {
	if s.text[i] == '-' {
		i++
	}
	switch {
	case s.text[i] == '0':
		i++
	case !isDigit(s.text[i]):
		return s.fail(i, "a number has no digits")
	default:
		i = digits(s.text, i)
	}
	if s.text[i] == '.' {
		if i++; !isDigit(s.text[i]) {
			return s.fail(i, "a number has no digits after its point")
		}
		i = digits(s.text, i)
	}
	if s.text[i]|0x20 != 'e' {
		return i
	}
	if i++; s.text[i] == '+' || s.text[i] == '-' {
		i++
	}
	if !isDigit(s.text[i]) {
		return s.fail(i, "a number has no digits in its exponent")
	}
	return digits(s.text, i)
}

// digits passes digits.
func digits(text []byte, i int) int {
	for isDigit(text[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// skip passes white space.
func (s *scanner) skip(i int) int {
	if s.text[i] > ' ' {
		return i
	}
	return s.space(i)
}

func (s *scanner) space(i int) int {
	start := i
	for c := s.text[i]; c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = s.text[i] {
		i++
	}
	if i > start {
		s.kept.leaveOut(start, i)
	}
	return i
}

// Words of eight equal bytes, to compare eight bytes at once.
const (
	everyByte  = 0x0101010101010101
	everyQuote = '"' * everyByte
	everySlash = '\\' * everyByte
	everySpace = ' ' * everyByte
	everyTop   = 0x80 * everyByte
)

// Padding is how many bytes behind a body the parser may read and
// overwrite, so that it can always load eight.
const Padding = 8

// stops marks the top bit of bytes in word that end the fast path: a
// quote, a backslash, a control character, a byte outside ASCII. Only
// the lowest mark is exact: a borrow may spoil those above. (Alan
// Mycroft's test for a zero byte, three times.)
func stops(word uint64) uint64 {
	quote := (word ^ everyQuote) - everyByte
	slash := (word ^ everySlash) - everyByte
	control := word - everySpace
	return (quote | slash | control | word) & everyTop
}

// PlainPrefix returns how many bytes at the start of a text a string of JSON
// has as they are: ASCII that needs no escape.
func PlainPrefix(text []byte) int {
	i := 0
	for ; i+8 <= len(text); i += 8 {
		if marks := stops(binary.LittleEndian.Uint64(text[i:])); marks != 0 {
			return i + bits.TrailingZeros64(marks)>>3
		}
	}
	for ; i < len(text); i++ {
		if c := text[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			return i
		}
	}
	return i
}

// quoted is the inside of a string as it was sent.
type quoted struct {
	raw     []byte
	escaped bool // it holds a backslash
}

// decode returns the meaning of the string, in scratch where it differs.
func (q quoted) decode(scratch *[]byte) []byte {
	if !q.escaped {
		return q.raw
	}
	*scratch = unescape((*scratch)[:0], q.raw)
	return *scratch
}

// str checks a string.
func (s *scanner) str(i int) int {
	s.escaped = false
	text := s.text
	i++
	for {
		marks := stops(binary.LittleEndian.Uint64(text[i:]))
		if marks == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(marks) >> 3
		if text[i] == '"' {
			return i + 1
		}
		if i = s.oddByte(i); i < 0 {
			return i
		}
	}
}

// inside is the inside of the string read last.
func (s *scanner) inside(start, end int) quoted {
	return quoted{raw: s.text[start+1 : end-1], escaped: s.escaped}
}

// oddByte checks a byte inside a string that is not plain ASCII.
func (s *scanner) oddByte(i int) int {
	switch c := s.text[i]; {
	case c >= utf8.RuneSelf:
		return s.runes(i)
	case c == '\\':
		s.escaped = true
		return s.escape(i)
	case i >= s.size:
		return s.fail(i, "a string is not closed")
	}
	return s.fail(i, "a control character in a string is not escaped")
}

// runes checks characters outside ASCII up to the next ASCII byte.
func (s *scanner) runes(i int) int {
	for s.text[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(s.text[i:s.size])
		if r == utf8.RuneError && size <= 1 {
			return s.fail(i, "the text is not valid UTF-8")
		}
		i += size
	}
	return i
}

// escape checks the escape sequence whose backslash is at i.
// Surrogates must come in pairs.
func (s *scanner) escape(i int) int {
	switch s.text[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
	default:
		return s.fail(i, "an escape sequence is unknown")
	}
	unit := hexUnit(s.text[i+2:])
	switch {
	case unit < 0:
		return s.fail(i, `\u needs four hexadecimal digits`)
	case !utf16.IsSurrogate(unit):
		return i + 6
	case unit >= 0xdc00 || s.text[i+6] != '\\' || s.text[i+7] != 'u' || hexUnit(s.text[i+8:])>>10 != 0xdc00>>10:
		return s.fail(i, "a surrogate stands alone")
	}
	return i + 12
}

// hexUnit is the number written by four hexadecimal digits, or negative.
func hexUnit(text []byte) rune {
	var unit rune
	if len(text) < 4 {
		return -1
	}
	for _, c := range text[:4] {
		switch {
		case c-'0' <= 9:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		unit = unit<<4 | rune(c)
	}
	return unit
}

// unescape appends the meaning of the inside of a valid string to dst.
func unescape(dst, raw []byte) []byte {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(dst, raw...)
		}
		r, size := unescapeOne(raw[i:])
		dst = utf8.AppendRune(append(dst, raw[:i]...), r)
		raw = raw[i+size:]
	}
}

// unescapeOne reads the escape sequence at the start of raw: its rune and length.
func unescapeOne(raw []byte) (rune, int) {
	if len(raw) < 2 || raw[1] == 'u' && len(raw) < 6 { // only in a damaged block
		return utf8.RuneError, len(raw)
	}
	switch raw[1] {
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		unit := hexUnit(raw[2:])
		if utf16.IsSurrogate(unit) && len(raw) >= 12 {
			return utf16.DecodeRune(unit, hexUnit(raw[8:])), 12
		}
		return unit, 6
	}
	return rune(raw[1]), 2
}

// A compactor moves the parts of a text that are kept to its front.
type compactor struct {
	text []byte
	on   bool // what is read is kept
	run  int  // start of what is not yet moved
	end  int  // of what is kept; never behind run
}

// begin keeps the text from i on.
func (c *compactor) begin(i int) { c.run, c.on = i, true }

// upTo keeps what is read up to end.
func (c *compactor) upTo(end int) {
	if c.run != c.end {
		copy(c.text[c.end:], c.text[c.run:end])
	}
	c.end += end - c.run
	c.run = end
}

// finish keeps the text up to end, and no more.
func (c *compactor) finish(end int) {
	c.upTo(end)
	c.on = false
}

// leaveOut leaves out what is read from start to end.
func (c *compactor) leaveOut(start, end int) {
	if c.on {
		c.upTo(start)
		c.run = end
	}
}

// place returns where the byte at i goes.
func (c *compactor) place(i int) int { return c.end + i - c.run }
