package v5

import (
	"strings"
	"unicode/utf8"
)

// An unknown trace is compared line by line, without numbers, addresses and paths.

const (
	unknownWidth   = 300 // bytes of a line that are looked at
	unknownLetters = 3   // a line with fewer has no meaning
)

func unknownFrame(line string) (Frame, bool) {
	s := strings.TrimSpace(line)
	return Frame{Function: clip(s, unknownWidth)}, s != ""
}

func unknownMark(string) mark { return mark{} }

func unknownInApp(*Frame) bool { return true }

func unknownIdentity(dst []byte, f *Frame) []byte {
	start, letters := len(dst), 0
	for i, s := 0, f.Function; i < len(s); {
		end := i
		for end < len(s) && !isUnknownBreak(s[end]) {
			end++
		}
		dst, letters = appendUnknownWord(dst, s[i:end], letters)
		if end < len(s) {
			dst = append(dst, s[end])
		}
		i = end + 1
	}
	if letters < unknownLetters {
		return dst[:start]
	}
	return dst
}

// appendUnknownWord appends a word without its path and digits,
// and counts its letters.
func appendUnknownWord(dst []byte, word string, letters int) ([]byte, int) {
	if base := baseName(word); !allDigits(base) { // "f/2" is a name with the number of its arguments
		word = base
	}
	if rest, ok := strings.CutPrefix(word, "0x"); ok && isHexTail(rest) || isHexWord(word, 6) {
		return dst, letters
	}
	for i := 0; i < len(word); i++ {
		if !isDigit(word[i]) {
			dst = append(dst, word[i])
			letters++
		}
	}
	return dst, letters
}

func isUnknownBreak(c byte) bool { return strings.IndexByte(" \t(),[]{}<>=:;'\"", c) >= 0 }

// clip cuts s to at most n bytes, at the start of a character;
// bytes that are no text anywhere.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for end := n; end > max(0, n-utf8.UTFMax); end-- {
		if utf8.RuneStart(s[end]) {
			return s[:end]
		}
	}
	return s[:n]
}
