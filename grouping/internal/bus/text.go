package bus

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds of an error's text: only its beginning and its end are read,
// where most languages print the root cause. The log store has the rest.
const (
	maxHead   = 64 << 10 // bytes of JSON text
	maxTail   = 64 << 10
	maxPieces = 1024 // elements of an array, at each end
)

// piece is the position of a value.
type piece struct {
	start, end int
	escaped    bool // it is a string with an escape
}

// pieces are the elements of an array that are read.
type pieces struct {
	head []piece
	tail []piece // a ring, once it is full
	next int     // index in the ring of the next one
}

func (p *pieces) reset() { p.head, p.tail, p.next = p.head[:0], p.tail[:0], 0 }

func (p *pieces) add(e piece) {
	switch {
	case len(p.head) < maxPieces:
		p.head = append(p.head, e)
	case len(p.tail) < maxPieces:
		p.tail = append(p.tail, e)
	default:
		p.tail[p.next] = e
		p.next = (p.next + 1) % maxPieces
	}
}

func (p *pieces) inOrder() []piece {
	return append(append(p.head, p.tail[p.next:]...), p.tail[:p.next]...)
}

// appendEnds appends the text of e before head or after tail.
func (s *scanner) appendEnds(texts []string, e piece, head, tail int) []string {
	if s.text[e.start] != '"' {
		return append(texts, "")
	}
	raw, start := s.text[e.start+1:e.end-1], e.start+1
	if head >= tail || e.end <= head || e.start >= tail {
		return append(texts, s.unescape(raw, e.escaped))
	}
	if start < head {
		texts = append(texts, s.unescape(raw[:wholeEscapes(raw, head-start)], e.escaped))
	}
	if e.end > tail {
		texts = append(texts, s.unescape(raw[wholeEscapes(raw, max(0, tail-start)):], e.escaped))
	}
	return texts
}

// wholeEscapes is n, or more if that would split an escape.
func wholeEscapes(raw string, n int) int {
	for start := n - 1; start >= 0 && start > n-len(`\u0041`); start-- {
		if raw[start] != '\\' || slashesBefore(raw, start)%2 == 1 {
			continue
		}
		length := len(`\n`)
		if raw[start+1] == 'u' {
			length = len(`\u0041`)
		}
		return min(max(n, start+length), len(raw))
	}
	return n
}

func slashesBefore(raw string, i int) (n int) {
	for i > n && raw[i-1-n] == '\\' {
		n++
	}
	return n
}

// unescape decodes the inside of a JSON string. Lone surrogates become
// U+FFFD, as in encoding/json. ok is false for an invalid escape.
func unescape(raw string) (text string, ok bool) {
	var b strings.Builder
	b.Grow(len(raw))
	for {
		i := strings.IndexByte(raw, '\\')
		if i < 0 {
			b.WriteString(raw)
			return b.String(), true
		}
		b.WriteString(raw[:i])
		if len(raw) < i+2 {
			return "", false
		}
		c := raw[i+1]
		raw = raw[i+2:]
		if c == 'u' {
			r, rest, ok := unescapeRune(raw)
			if !ok {
				return "", false
			}
			b.WriteRune(r)
			raw = rest
			continue
		}
		k := strings.IndexByte(`"\/bfnrt`, c)
		if k < 0 {
			return "", false
		}
		b.WriteByte("\"\\/\b\f\n\r\t"[k])
	}
}

// unescapeRune decodes what follows "\u", with its pair.
func unescapeRune(raw string) (r rune, rest string, ok bool) {
	r, ok = hex4(raw)
	if !ok {
		return 0, raw, false
	}
	raw = raw[4:]
	if utf16.IsSurrogate(r) {
		low, paired := rune(0), strings.HasPrefix(raw, `\u`)
		if paired {
			low, paired = hex4(raw[2:])
		}
		if r = utf16.DecodeRune(r, low); paired && r != utf8.RuneError {
			raw = raw[6:]
		}
	}
	return r, raw, true
}

func hex4(s string) (r rune, ok bool) {
	if len(s) < 4 {
		return 0, false
	}
	for _, c := range []byte(s[:4]) {
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20-'a' < 6:
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
