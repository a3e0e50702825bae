package ingest

import (
	"bytes"
	"encoding/binary"
	"strings"
)

// A needle is text that every match of a condition has, whatever its case: most
// entries lack it, and looking for it takes a fifth of reading JSON. It is of
// ASCII that JSON has no escapes for but \u.
type needle struct {
	text    string // in lower case; empty: there is none
	letters bool
	foreign bool // characters beyond ASCII have the same lower case
}

// needleIn is the longest needle of a text in lower case.
func needleIn(text string) (n needle) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune(`"\/`, r) }) {
		if len(part) > len(n.text) {
			n.text = part
		}
	}
	n.letters = strings.ContainsFunc(n.text, func(r rune) bool { return 'a' <= r && r <= 'z' })
	n.foreign = strings.ContainsAny(n.text, "iks") // İ and ı, the Kelvin sign, ſ
	return n
}

// mayBeIn reports whether text that means something with it may be in JSON.
func (n needle) mayBeIn(text []byte) bool {
	return n.mayBeInPlain(text) || bytes.Contains(text, []byte(`\u`))
}

// mayBeInPlain is mayBeIn of a text that has no escapes.
func (n needle) mayBeInPlain(text []byte) bool {
	return n.text == "" || n.isIn(text) || n.foreign && !isASCII(text)
}

func (n needle) isIn(text []byte) bool { return n.index(text) >= 0 }

// index is where the needle may be first; negative: nowhere.
func (n needle) index(text []byte) int {
	if !n.letters {
		return bytes.Index(text, []byte(n.text))
	}
	var lower [512]byte
	step := len(lower) - len(n.text) + 1
	if step <= 0 {
		return 0
	}
	for from := 0; len(text)-from >= len(n.text); from += step {
		part := lowerASCII(lower[:], text[from:min(from+len(lower), len(text))])
		if at := bytes.Index(part, []byte(n.text)); at >= 0 {
			return from + at
		}
	}
	return -1
}

// A haystack is plain texts, one behind the other, in which a needle is looked for
// at once: most have none.
type haystack struct {
	needle needle
	all    []byte // the texts, with something between them
	at     int    // the end of the last text
	next   int    // where the needle is; negative: nowhere behind the last text
	any    bool   // it may be in any text
}

func (n needle) in(texts []byte) haystack {
	if n.text == "" || n.foreign && !isASCII(texts) {
		return haystack{any: true, next: -1}
	}
	return haystack{needle: n, all: texts, next: n.index(texts)}
}

// mayHave reports whether the needle may be in the next text, which begins behind a gap.
func (h *haystack) mayHave(gap, size int) bool {
	begin := h.at + gap
	h.at = begin + size
	for h.next >= 0 && h.next < begin {
		from := h.next + 1
		if h.next = h.needle.index(h.all[from:]); h.next >= 0 {
			h.next += from
		}
	}
	return h.any || h.next >= 0 && h.next+len(h.needle.text) <= h.at
}

// Each byte of a word of eight: one, and its highest bit.
const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// lowerASCII writes a text to dst, with capital letters of ASCII as small ones.
func lowerASCII(dst, text []byte) []byte {
	dst = dst[:len(text)]
	i := 0
	for ; i+8 <= len(text); i += 8 {
		word := binary.LittleEndian.Uint64(text[i:])
		low := word &^ highs
		capital := (low + (0x80-'A')*ones) &^ (low + (0x7f-'Z')*ones) &^ word & highs
		binary.LittleEndian.PutUint64(dst[i:], word|capital>>2)
	}
	for ; i < len(text); i++ {
		if dst[i] = text[i]; 'A' <= text[i] && text[i] <= 'Z' {
			dst[i] |= 0x20
		}
	}
	return dst
}

func isASCII(text []byte) bool {
	for ; len(text) >= 8; text = text[8:] {
		if binary.LittleEndian.Uint64(text)&highs != 0 {
			return false
		}
	}
	for _, c := range text {
		if c >= 0x80 {
			return false
		}
	}
	return true
}
