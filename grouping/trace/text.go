package trace

import (
	"slices"
	"strings"
)

func withoutIndent(line string) string { return blanks.trimLeft(line) }

func leadingSpace(s string) int { return len(s) - len(withoutIndent(s)) }

// trimEnd drops white space and control characters at the end of a line.
func trimEnd(s string) string { return lineEnds.trimRight(s) }

var (
	blanks, lineEnds = marksOf(" \t"), marksOf(" \t\r")
	notInType        = marksOf(" \t\"'()[]{}=,;/")
)

func isDigit(c byte) bool { return c-'0' < 10 }
func isUpper(c byte) bool { return c-'A' < 26 }
func isLower(c byte) bool { return c-'a' < 26 }
func isAlpha(c byte) bool { return isUpper(c) || isLower(c) }

func isHex(c byte) bool { return isDigit(c) || c-'a' < 6 || c-'A' < 6 }

// countDigits is how many digits s begins with.
func countDigits(s string) int { return len(s) - len(decimals.trimLeft(s)) }

func allDigits(s string) bool { return s != "" && countDigits(s) == len(s) }

func hasDigit(s string) bool { return marksOf(s).has('0') }

// isHexWord reports whether s can only be a hash, an id or an address: hexadecimal, long enough, with a digit.
func isHexWord(s string, least int) bool { return len(s) >= least && isHexTail(s) && hasDigit(s) }

func isHexTail(s string) bool {
	for i := range len(s) {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}

func appendWithoutDigits(dst []byte, s string) []byte {
	for _, c := range []byte(s) {
		if !isDigit(c) {
			dst = append(dst, c)
		}
	}
	return dst
}

func beginsWithAny(s string, beginnings ...string) bool {
	return slices.ContainsFunc(beginnings, func(one string) bool { return strings.HasPrefix(s, one) })
}

func endsWithAny(s string, ends ...string) bool {
	return slices.ContainsFunc(ends, func(one string) bool { return strings.HasSuffix(s, one) })
}

// partsOf are parts of names, see containsAny.
func partsOf(all ...string) (parts []line) {
	for _, one := range all {
		parts = append(parts, newLine(one))
	}
	return parts
}

func containsAny(s string, parts []line) bool {
	has := marksOf(s)
	for i := range parts {
		if p := &parts[i]; p.has&^has == 0 && strings.Contains(s, p.string) {
			return true
		}
	}
	return false
}

// withoutBegins takes each of these off, one after the other.
func withoutBegins(s string, begins ...string) string {
	for _, begin := range begins {
		s = strings.TrimPrefix(s, begin)
	}
	return s
}

// number reads a decimal number; 0 if it does not fit.
func number(s string) (n int) {
	if len(s) > 9 {
		return 0
	}
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	return n
}

// cutNumber takes ":123" off the end of s.
func cutNumber(s string) (rest string, n int, ok bool) {
	begin := len(s)
	for begin > 0 && isDigit(s[begin-1]) {
		begin--
	}
	if begin == len(s) || begin == 0 || s[begin-1] != ':' {
		return s, 0, false
	}
	return s[:begin-1], number(s[begin:]), true
}

// lastIndex is strings.LastIndex, which hashes.
func lastIndex(s, mark string) int {
	for i := len(s) - len(mark); i >= 0; i-- {
		if s[i] == mark[0] && s[i:i+len(mark)] == mark {
			return i
		}
	}
	return -1
}

// cutLast cuts s at the last mark. It searches from the front first, which is faster, as most lines have none.
func cutLast(s, mark string) (before, after string, ok bool) {
	if !strings.Contains(s, mark) {
		return s, "", false
	}
	i := lastIndex(s, mark)
	return s[:i], s[i+len(mark):], true
}

// cutPosition takes ":12:34" or ":12" off the end of s.
func cutPosition(s string) (rest string, line, column int, ok bool) {
	rest, line, ok = cutNumber(s)
	if before, n, two := cutNumber(rest); ok && two {
		return before, n, line, true
	}
	return rest, line, 0, ok
}

// baseName is what follows the last slash or backslash.
func baseName(path string) string {
	i := len(path)
	for i > 0 && path[i-1] != '/' && path[i-1] != '\\' {
		i--
	}
	return path[i:]
}

// parentName is the last folder of a path.
func parentName(path string) string { return baseName(path[:max(len(path)-len(baseName(path))-1, 0)]) }

// after returns what follows the last of any mark in path, and whether there was one. Marks have "/" and match both
// slashes.
func after(path string, marks ...string) (string, bool) {
	backslashed := strings.IndexByte(path, '\\') >= 0
	for _, mark := range marks {
		if _, rest, ok := cutLast(path, mark); ok {
			return rest, true
		}
		for i := len(path) - len(mark); i >= 0 && backslashed; i-- {
			if equalSlashed(path[i:i+len(mark)], mark) {
				return path[i+len(mark):], true
			}
		}
	}
	return path, false
}

// isBelow reports whether a file is in one of these folders.
func isBelow(path string, folders ...string) bool {
	_, ok := after(path, folders...)
	return ok
}

func equalSlashed(s, mark string) bool {
	for i := range len(mark) {
		if s[i] != mark[i] && (s[i] != '\\' || mark[i] != '/') {
			return false
		}
	}
	return true
}

// withoutQuery is s without "?query" and "#fragment".
func withoutQuery(s string) string {
	if end := min(cutAt(s, 0, '?'), cutAt(s, 0, '#')); end > 0 {
		return s[:end]
	}
	return s
}

// typeAndMessage splits "Type: message" where the first part looks like an error's class.
func typeAndMessage(s string) (typ, message string, ok bool) {
	s = strings.TrimSpace(s)
	typ, message, found := strings.Cut(s, ": ")
	if !found {
		typ = strings.TrimSuffix(s, ":")
	}
	if plain, ok := strings.CutSuffix(typ, " "); ok && isErrorName(plain) { // by xUnit
		typ = plain
	}
	if typ == "" || len(typ) > 200 || notInType.occursIn(typ) {
		return "", "", false
	}
	return typ, strings.TrimSpace(message), true
}

// Cut cuts s to at most n bytes of whole characters, marked by "…".
func Cut(s string, n int) string {
	const mark = "…"
	if len(s) <= n {
		return s
	}
	return Clip(s, n-len(mark)) + mark
}

// FirstLine returns the first non-blank line, trimmed.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimSpace(line)
}
