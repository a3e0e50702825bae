package ingest

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

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
		if utf16.IsSurrogate(unit) {
			return utf16.DecodeRune(unit, hexUnit(raw[8:])), 12
		}
		return unit, 6
	}
	return rune(raw[1]), 2
}
