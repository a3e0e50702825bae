package grouping

import (
	"strings"
	"unicode/utf8"
)

// An unknown trace is compared line by line, without numbers, addresses and
// paths. What a report says of the process, "Version: 1.2", counts where it
// says nothing else.

const (
	unknownWidth   = 300 // bytes of a line that are looked at
	unknownLetters = 3   // a line with fewer has no meaning
)

func unknownFrame(line string) (Frame, bool) {
	s := strings.TrimSpace(line)
	return Frame{Function: clip(s, unknownWidth)}, s != ""
}

func unknownMark(string) mark { return mark{} }

// unknownOpens reads the error that a report names: "Fatal error: no such cart".
func unknownOpens(line string) mark {
	label, value := cutLabel(strings.TrimSpace(line))
	for _, word := range [...]string{"rror", "xception"} {
		if strings.Contains(label, word) {
			return mark{kind: header, message: value}
		}
	}
	return mark{}
}

func unknownInApp(f *Frame) bool {
	label, _ := cutLabel(f.Function)
	return label == ""
}

// cutLabel splits "Exit code: 3"; a label is words, the first of which
// begins in upper case.
func cutLabel(s string) (label, value string) {
	label, value, ok := strings.Cut(s, ":")
	if !ok || label == "" || !isUpper(label[0]) || value != "" && value[0] != ' ' && value[0] != '\t' {
		return "", s
	}
	for i := range len(label) {
		if !isAlpha(label[i]) && label[i] != ' ' && label[i] != '/' {
			return "", s
		}
	}
	return label, strings.TrimSpace(value)
}

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
