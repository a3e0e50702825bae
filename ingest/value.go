package ingest

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math/bits"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// value checks the JSON value at i and returns the offset behind it. depth is
// its level if it is an array or an object.
func (p *Parser) value(i, depth int) int {
	switch p.text[i] {
	case '"':
		return p.str(i)
	case '{':
		return p.object(i, depth)
	case '[':
		return p.array(i, depth)
	case 't':
		return p.word(i, "true")
	case 'n':
		return p.word(i, "null")
	case 'f':
		return p.word(i, "false")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.number(i)
	}
	return p.fail(i, "a value is missing or malformed")
}

// object checks an object of which nothing but its JSON matters.
func (p *Parser) object(i, depth int) int {
	if depth > MaxDepth {
		return p.tooDeep(i)
	}
	i = p.skip(i + 1)
	if p.text[i] == '}' {
		return i + 1
	}
	for {
		if i = p.name(i); i < 0 {
			return i
		}
		if i = p.value(i, depth+1); i < 0 {
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

// name checks the name of a member and its colon, and returns
// the offset of the value.
func (p *Parser) name(i int) int {
	if i = p.quotedName(i); i < 0 {
		return i
	}
	return p.colon(i)
}

func (p *Parser) quotedName(i int) int {
	if p.text[i] != '"' {
		return p.fail(i, "a name in double quotes is missing")
	}
	return p.str(i)
}

func (p *Parser) colon(i int) int {
	if i = p.skip(i); p.text[i] != ':' {
		return p.fail(i, "a colon is missing after a name")
	}
	return p.skip(i + 1)
}

// array checks an array of which nothing but its JSON matters.
func (p *Parser) array(i, depth int) int {
	if depth > MaxDepth {
		return p.tooDeep(i)
	}
	i = p.skip(i + 1)
	if p.text[i] == ']' {
		return i + 1
	}
	return p.elements(i, depth)
}

// elements checks an array from the element at i on.
func (p *Parser) elements(i, depth int) int {
	for {
		if i = p.value(i, depth+1); i < 0 {
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

// comma checks the comma at i and returns the offset of what follows it.
func (p *Parser) comma(i int, where string) int {
	if p.text[i] != ',' {
		return p.fail(i, "a comma is missing in "+where+", or its end")
	}
	return p.skip(i + 1)
}

// word checks one of the three literal names.
func (p *Parser) word(i int, want string) int {
	after := i + len(want)
	if after > p.size || string(p.text[i:after]) != want {
		return p.fail(i, "a value is missing or malformed")
	}
	return after
}

// isNull reports whether the value at i begins like null.
func (p *Parser) isNull(i int) bool {
	return binary.LittleEndian.Uint32(p.text[i:]) == 'n'|'u'<<8|'l'<<16|'l'<<24
}

// number checks a number: -? int frac? exp?.
func (p *Parser) number(i int) int {
	if p.text[i] == '-' {
		i++
	}
	switch {
	case p.text[i] == '0':
		i++
	case !isDigit(p.text[i]):
		return p.fail(i, "a number has no digits")
	default:
		i = p.digits(i)
	}
	if p.text[i] == '.' {
		if i++; !isDigit(p.text[i]) {
			return p.fail(i, "a number has no digits after its point")
		}
		i = p.digits(i)
	}
	if p.text[i]|0x20 != 'e' {
		return i
	}
	if i++; p.text[i] == '+' || p.text[i] == '-' {
		i++
	}
	if !isDigit(p.text[i]) {
		return p.fail(i, "a number has no digits in its exponent")
	}
	return p.digits(i)
}

func (p *Parser) digits(i int) int {
	for isDigit(p.text[i]) {
		i++
	}
	return i
}

func isDigit(c byte) bool { return c-'0' <= 9 }

// skip returns the offset of the next byte that is no white space.
func (p *Parser) skip(i int) int {
	if p.text[i] > ' ' {
		return i
	}
	return p.space(i)
}

// space passes white space, and leaves it out of the entry that is being kept.
func (p *Parser) space(i int) int {
	start := i
	for c := p.text[i]; c == ' ' || c == '\n' || c == '\r' || c == '\t'; c = p.text[i] {
		i++
	}
	if p.keeping && i > start {
		p.keep(start)
		p.run = i
	}
	return i
}

// kind names the kind of the value that begins at i, for a person.
func (p *Parser) kind(i int) string {
	switch p.text[i] {
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

func (p *Parser) tooDeep(i int) int {
	return p.fail(i, "arrays and objects nest more than 128 levels deep")
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

// str checks the string whose opening quote is at i and returns the offset
// behind its end. It sets escaped at a backslash.
func (p *Parser) str(i int) int {
	text := p.text
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
		if i = p.oddByte(i); i < 0 {
			return i
		}
	}
}

// oddByte checks a byte inside a string that is not plain ASCII.
func (p *Parser) oddByte(i int) int {
	switch c := p.text[i]; {
	case c >= utf8.RuneSelf:
		return p.runes(i)
	case c == '\\':
		p.escaped = true
		return p.escape(i)
	case i >= p.size:
		return p.fail(i, "a string is not closed")
	}
	return p.fail(i, "a control character in a string is not escaped")
}

// runes checks characters outside ASCII up to the next ASCII byte.
func (p *Parser) runes(i int) int {
	for p.text[i] >= utf8.RuneSelf {
		r, size := utf8.DecodeRune(p.text[i:p.size])
		if r == utf8.RuneError && size <= 1 {
			return p.fail(i, "the text is not valid UTF-8")
		}
		i += size
	}
	return i
}

// escape checks the escape sequence whose backslash is at i.
// Surrogates must come in pairs.
func (p *Parser) escape(i int) int {
	switch p.text[i+1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 2
	case 'u':
	default:
		return p.fail(i, "an escape sequence is unknown")
	}
	unit := hexUnit(p.text[i+2:])
	switch {
	case unit < 0:
		return p.fail(i, `\u needs four hexadecimal digits`)
	case !utf16.IsSurrogate(unit):
		return i + 6
	case unit >= 0xdc00 || p.text[i+6] != '\\' || p.text[i+7] != 'u' || hexUnit(p.text[i+8:])>>10 != 0xdc00>>10:
		return p.fail(i, "a surrogate stands alone")
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

// Instant is an event time to the nanosecond, in the years 0000
// to 9999, for which 64 bits are too few.
type Instant struct {
	Seconds int64  // since 1970-01-01T00:00:00Z, negative before
	Nanos   uint32 // 0..999,999,999, always forward from Seconds
}

// InstantOf returns t as an Instant.
func InstantOf(t time.Time) Instant {
	return Instant{Seconds: t.Unix(), Nanos: uint32(t.Nanosecond())}
}

// Time returns the instant in UTC.
func (t Instant) Time() time.Time { return time.Unix(t.Seconds, int64(t.Nanos)).UTC() }

// Compare orders instants: negative when t is before u.
func (t Instant) Compare(u Instant) int {
	return cmp.Or(cmp.Compare(t.Seconds, u.Seconds), cmp.Compare(t.Nanos, u.Nanos))
}

// ParseInstant reads an RFC 3339 time in UTC: YYYY-MM-DDTHH:MM:SS, an
// optional fraction of 1 to 9 digits, Z. It must be on the calendar: no
// February 30, no hour 24, no second 60.
func ParseInstant(text []byte) (Instant, bool) {
	if len(text) < len("2006-01-02T15:04:05Z") || text[len(text)-1] != 'Z' {
		return Instant{}, false
	}
	if text[4] != '-' || text[7] != '-' || text[10] != 'T' || text[13] != ':' || text[16] != ':' {
		return Instant{}, false
	}
	year, month, day := fourDigits(text[0:4]), twoDigits(text[5:7]), twoDigits(text[8:10])
	hour, minute, second := twoDigits(text[11:13]), twoDigits(text[14:16]), twoDigits(text[17:19])
	if year < 0 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month) {
		return Instant{}, false
	}
	if uint(hour) > 23 || uint(minute) > 59 || uint(second) > 59 {
		return Instant{}, false
	}
	nanos, ok := fraction(text[19 : len(text)-1])
	seconds := int64(daysSinceEpoch(year, month, day))*86400 + int64(hour*3600+minute*60+second)
	return Instant{Seconds: seconds, Nanos: nanos}, ok
}

// AppendText appends the instant as RFC 3339 with as many digits
// of fraction as it needs.
func (t Instant) AppendText(dst []byte) []byte {
	return t.Time().AppendFormat(dst, time.RFC3339Nano)
}

// String returns the instant as RFC 3339.
func (t Instant) String() string { return string(t.AppendText(nil)) }

// fraction reads ".d" to ".ddddddddd", or nothing.
func fraction(text []byte) (uint32, bool) {
	if len(text) == 0 {
		return 0, true
	}
	if text[0] != '.' || len(text) < 2 || len(text) > 10 {
		return 0, false
	}
	nanos, unit := uint32(0), uint32(100_000_000)
	for _, c := range text[1:] {
		if c -= '0'; c > 9 {
			return 0, false
		}
		nanos += uint32(c) * unit
		unit /= 10
	}
	return nanos, true
}

// twoDigits is the number, or negative where a byte is no digit.
func twoDigits(text []byte) int {
	hi, lo := text[0]-'0', text[1]-'0'
	if hi > 9 || lo > 9 {
		return -1
	}
	return int(hi)*10 + int(lo)
}

// fourDigits is the number, or negative where a byte is no digit.
func fourDigits(text []byte) int {
	if word := binary.LittleEndian.Uint32(text); !fourAreDigits(word) {
		return -1
	}
	return twoDigits(text[:2])*100 + twoDigits(text[2:4])
}

func fourAreDigits(word uint32) bool {
	return word&0xf0f0f0f0 == 0x30303030 && (word+0x06060606)&0xf0f0f0f0 == 0x30303030
}

func daysIn(year, month int) int {
	if month == 2 && year%4 == 0 && (year%100 != 0 || year%400 == 0) {
		return 29
	}
	return int([...]uint8{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[month-1])
}

// daysSinceEpoch counts days in the proleptic Gregorian calendar: Howard Hinnant,
// "chrono-compatible low-level date algorithms", days_from_civil.
func daysSinceEpoch(year, month, day int) int {
	if month <= 2 {
		year--
	}
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	yearOfEra := year - era*400
	dayOfYear := (153*((month+9)%12)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*146097 + dayOfEra - 719468
}
