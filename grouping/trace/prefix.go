package trace

import "strings"

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
func commonWords(lines []line) int {
	if len(lines) < 2 {
		return 0
	}
	words := prefixWords
	for _, one := range lines[1:min(len(lines), prefixLines)] {
		if words = commonPrefixWords(lines[0].string, one.string, words); words == 0 {
			break
		}
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

// withoutColors drops color codes of terminals.
func withoutColors(line string) string {
	if strings.IndexByte(line, escape[0]) < 0 {
		return line
	}
	var plain strings.Builder
	for line != "" {
		before, rest, _ := strings.Cut(line, escape+"[")
		plain.WriteString(before)
		if line = colorCode.trimLeft(rest); line != "" {
			line = line[1:]
		}
	}
	return plain.String()
}

const escape = "\x1b"

var colorCode = marksOf("0123456789;")

// fromContainer reads a line of Docker's log, `{"log":"\tat a.B.c(B.java:1)\n", "stream":"stderr"}`.
func fromContainer(line string) string {
	text, ok := strings.CutPrefix(line, `{"log":"`)
	if !ok {
		return line
	}
	text, _, _ = strings.Cut(text, `","stream":"`)
	return jsonEscapes.Replace(strings.TrimSuffix(strings.TrimSuffix(text, `\n`), `\r`))
}

var jsonEscapes = strings.NewReplacer(`\r\n`, "\n", `\n`, "\n", `\t`, "\t", `\"`, `"`, `\\`, `\`, `\/`, "/")

// isEscaped reports whether a piece was encoded once too often, so that "\\n" ends its lines. It may
// also be in a path of Windows, but not before or behind these.
func isEscaped(piece string) bool {
	if strings.IndexByte(piece, '\n') >= 0 {
		return false
	}
	for before, rest, found := strings.Cut(piece, `\n`); found; before, rest, found = strings.Cut(rest, `\n`) {
		if _, _, numbered := cutNumber(strings.TrimSuffix(before, `\r`)); numbered || beginsWithAny(rest, lineBegins) {
			return true
		}
	}
	return false
}

var lineBegins = []string{" ", "\t", `\t`, "/", "#"}
