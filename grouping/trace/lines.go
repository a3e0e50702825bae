package trace

import (
	"bytes"
	"strings"
	"unsafe"
)

// line is a line of a trace, and what is in it.
type line struct {
	string
	has marks
}

func newLine(s string) line {
	has := marksOf(s)
	for i := 0; has.has(':') && has.has('0'); {
		next := strings.IndexByte(s[i:], ':')
		if i += next + 1; next < 0 || i == len(s) {
			break
		}
		if isDigit(s[i]) {
			return line{s, has | numbered}
		}
	}
	return line{s, has}
}

// text is the lines of a trace.
type text struct {
	lines   []line
	spare   []line       // the lines without their prefix
	decoded bytes.Buffer // what was encoded, or had colors; only written to, as strings share it
}

// collect splits the pieces into lines. Traces flattened into one line are split as well.
func (t *text) collect(pieces []string) {
	for _, piece := range pieces {
		l := newLine(piece)
		if l.has.has('\\') && isEscaped(piece) {
			piece = t.unescape(piece)
			l = newLine(piece)
		}
		if !l.has.has('\n') && !strings.HasPrefix(piece, "{") && !strings.HasPrefix(piece, `\t`) { // as most are
			t.split(l)
			continue
		}
		for one := range strings.SplitSeq(piece, "\n") {
			t.split(newLine(t.decodeLine(one)))
		}
	}
}

// split keeps the calls of a line.
func (t *text) split(l line) {
	l.string = trimEnd(l.string)
	all := len(l.string)
	if l.has.has('[') && t.elements(l.string) {
		return
	}
	for l.string != "" && strings.IndexByte("{[*", l.string[0]) >= 0 { // an Erlang term or its report, with all calls
		i := strings.Index(l.string, "]},{")
		if i < 0 {
			break
		}
		t.keep(newLine(l.string[:i+len("]},")]))
		l.string = l.string[i+len("]},"):]
	}
	for l.has.has(')') && strings.IndexByte(l.string, ')') < len(l.string)-1 {
		i := strings.Index(l.string, ") at ")
		if i < 0 || strings.Contains(l.string[:i], "frame #") || !isCall(l.string[i+len(") at "):]) {
			break
		}
		if first := strings.Index(l.string[:i], " at "); first > 0 && first > leadingSpace(l.string) {
			t.keep(newLine(l.string[:first]))
			l.string, i = l.string[first+1:], i-first-1
		}
		t.keep(newLine(l.string[:i+1]))
		l.string = l.string[i+2:]
	}
	if len(l.string) < all {
		l = newLine(l.string)
	}
	if l.string != "" {
		t.keep(l)
	}
}

// elements keeps the calls of "[a.B.c(B.java:1), d.E.f(E.java:2)]", as Java prints an array of them.
func (t *text) elements(s string) bool {
	calls, array := strings.CutPrefix(s, "[")
	first, _, several := strings.Cut(calls, ", ")
	if !array || !several || !javaFrame(newLine(first), &Frame{}) {
		return false
	}
	for call := range strings.SplitSeq(strings.TrimSuffix(calls, "]"), ", ") {
		t.keep(newLine(call))
	}
	return true
}

// isCall distinguishes calls, "a.B.c(B.java:1)" and "a.js:1:2", from "f.c:3", the place of one.
func isCall(s string) bool {
	s = s[:min(len(s), maxLine)]
	_, _, column, _ := cutPosition(s)
	return column > 0 || strings.IndexByte(s, '(') >= 0
}

// keep adds a line. Of too many, middle ones are dropped.
func (t *text) keep(l line) {
	if len(t.lines) == maxLines+maxLines/2 {
		t.lines = append(t.lines[:maxLines/2], t.lines[maxLines:]...)
	}
	if len(l.string) > maxLine {
		l = newLine(Clip(l.string, maxLine))
	}
	t.lines = append(t.lines, l)
}

// Collectors of logs put "web_1  | ", "2024-01-01T10:00:00Z stderr F " or "Jan  1 10:00:00 host app[7]: " in front of
// each line: the same in all but numbers. Prefixes are searched for where no language is recognized, or where all lines
// begin at the margin with the same word.

// Bounds of a prefix.
const (
	prefixWords = 8
	prefixLines = 32 // that are compared
	maxCommon   = 4  // words after it with which all calls may begin: "#1 0x55 in"
)

// isCollected reports whether lines begin as a collector's do.
func isCollected(lines []line) bool {
	if len(lines) < 2 || leadingSpace(lines[0].string) > 0 || strings.HasPrefix(lines[0].string, "at ") {
		return false
	}
	word, _ := cutWord(lines[0].string)
	other, _ := cutWord(lines[1].string)
	return hasLetter(word) && sameButDigits(word, other)
}

// commonWords counts the first words that all lines share, but for digits.
func commonWords(lines []line) (words int) {
	if len(lines) < 2 {
		return 0
	}
	words = prefixWords
	for _, one := range lines[1:min(len(lines), prefixLines)] {
		words = commonPrefixWords(lines[0].string, one.string, words)
	}
	return words
}

// withoutWords appends the lines without their first words.
func withoutWords(dst, lines []line, words int) []line {
	for _, one := range lines {
		s := one.string
		for range words {
			_, s = cutWord(s)
		}
		dst = append(dst, newLine(s))
	}
	return dst
}

// commonPrefixWords counts the first words that two lines share, at most so many, up to "at", with which calls begin.
func commonPrefixWords(a, b string, most int) (words int) {
	for ; words < most; words++ {
		var first, second string
		first, a = cutWord(a)
		second, b = cutWord(b)
		if first == "" || first == "at" || !sameButDigits(first, second) {
			break
		}
	}
	return words
}

// cutWord takes a word and one blank off a line.
func cutWord(s string) (word, rest string) {
	word, rest, _ = strings.Cut(withoutIndent(s), " ")
	return word, rest
}

// sameButDigits compares two words, any number for a number: fractions of a second lose their last zeros.
func sameButDigits(a, b string) bool {
	for a != "" && b != "" {
		m, n := countDigits(a), countDigits(b)
		if (m > 0) != (n > 0) || m == 0 && a[0] != b[0] {
			return false
		}
		a, b = a[max(m, 1):], b[max(n, 1):]
	}
	return a == b
}

// decodeLine undoes the escapes in a line, those of Docker's log, `{"log":"\tat a.B.c(B.java:1)\n", "stream":"stderr"}`, and colors.
func (t *text) decodeLine(line string) string {
	if text, ok := strings.CutPrefix(line, `{"log":"`); ok {
		text, _, _ = strings.Cut(text, `","stream":"`)
		line = t.unescape(strings.TrimSuffix(strings.TrimSuffix(text, `\n`), `\r`))
	} else if strings.HasPrefix(line, `\t`) {
		line = t.unescape(line)
	}
	if strings.IndexByte(line, '\x1b') < 0 {
		return line
	}
	start := t.decoded.Len()
	for line != "" {
		before, rest, _ := strings.Cut(line, "\x1b[")
		t.decoded.WriteString(before)
		line = strings.TrimLeft(rest, "0123456789;")
		line = line[min(1, len(line)):]
	}
	return t.decodedFrom(start)
}

var jsonEscapes = strings.NewReplacer(`\r\n`, "\n", `\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`, `\/`, "/")

// unescape returns s without the escapes of JSON.
func (t *text) unescape(s string) string {
	start := t.decoded.Len()
	_, _ = jsonEscapes.WriteString(&t.decoded, s) // memory takes all
	return t.decodedFrom(start)
}

// decodedFrom is what was decoded last. Nothing overwrites it before the next error is read.
func (t *text) decodedFrom(start int) string {
	last := t.decoded.Bytes()[start:]
	return unsafe.String(unsafe.SliceData(last), len(last))
}

// Keep lets the strings of this error last. Otherwise those that were decoded change when the next error is read.
func (t *text) Keep() { t.decoded = bytes.Buffer{} }

// isEscaped reports whether a piece was encoded once too often, so that "\\n" ends its lines. It may
// also be in a path of Windows, but not before or behind these.
func isEscaped(piece string) bool {
	if strings.IndexByte(piece, '\n') >= 0 {
		return false
	}
	for before, rest, found := strings.Cut(piece, `\n`); found; before, rest, found = strings.Cut(rest, `\n`) {
		if _, _, numbered := cutNumber(strings.TrimSuffix(before, `\r`)); numbered || beginsWithAny(rest, " ", "\t", `\t`, "/", "#") {
			return true
		}
	}
	return false
}
