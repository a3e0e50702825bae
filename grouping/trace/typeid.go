package trace

import "strings"

// The type of an error is a class or a code. Some programs put ids into it, as in "Timeout<1234>" or "Error_8f3a9c", so
// that no two errors would be equal: ids are removed before comparison. Parts of names stay: "Http2Error",
// "SHA256Error", "E11000", "ORA-00942", "HTTP404".

const (
	minHexID       = 6 // characters of a part that is hexadecimal
	minTaggedHexID = 4 // after "#" or "@", which announce an id
	minPlainHexID  = 8 // of letters followed by a number: "E11000" is a code
	minNumberID    = 4 // digits of a number that stands alone: three are a status
	minInnerNumber = 5 // digits of a number within a word
	uuidLength     = 36
	curve          = "25519" // in names of cryptography
)

// appendWithoutIDs appends a type with "*" for each id in it, and without addresses and counters.
func appendWithoutIDs(dst []byte, typ string) []byte {
	plain, coded := 0, !hasLetter(typ) // "23505" is a code
	for i := 0; i < len(typ) && !coded; {
		start, end, next := nextID(typ, i)
		if start < end {
			dst = append(appendWithoutAddresses(dst, typ[plain:start]), '*')
			plain = end
		}
		i = next
	}
	return appendWithoutAddresses(dst, typ[plain:])
}

// appendWithoutAddresses makes "Foo$" of "Foo$1", and "#<Class:>" of "#<Class:0x00007f>".
func appendWithoutAddresses(dst []byte, s string) []byte {
	for before, rest, found := strings.Cut(s, "0x"); found; before, rest, found = strings.Cut(s, "0x") {
		dst, s = appendUncounted(dst, before), strings.TrimLeft(rest, "0123456789abcdefABCDEF")
	}
	return appendUncounted(dst, s)
}

// nextID examines the UUID, the part or the separator at i. It returns its end, and the id in it, if start < end.
func nextID(s string, i int) (start, end, next int) {
	if isUUID(s, i) {
		return i, i + uuidLength, i + uuidLength
	}
	for next = i + 1; next < len(s) && isAlnum(s[i]) && isAlnum(s[next]) && !isUUID(s, next); next++ {
	}
	part, before := s[i:next], byte(0)
	if i > 0 {
		before = s[i-1]
	}
	switch number := allDigits(part); {
	case strings.Contains(part, "0x"), number && isJavaCounted(s[:i]): // an address, a counter
		return next, next, next
	case number && isNumberID(part, before, notAlnum.afterLast(s[:max(i-1, 0)])), !number && isHexID(part, before):
		return i, next, next
	case number:
		return next, next, next
	}
	start, end = numberInWord(part)
	return i + start, i + end, next
}

var (
	notAlnum              = ^(smallLetters | marksOf("A0")) // what is between the parts of a type
	smallLetters, letters = marksOf("abcdefghijklmnopqrstuvwxyz"), smallLetters | marksOf("A\xff")
	dots, plainType       = marksOf("."), smallLetters | marksOf("A.")
)

// isNumberID distinguishes counters from codes. before is the byte before the number, label the word before that.
func isNumberID(digits string, before byte, label string) bool {
	switch before {
	case '#', '<', '@', '(', '{':
		return true
	case 0, '`', '$':
		return false
	}
	return (len(digits) >= minNumberID || before == '[') && !isUpperWord(label) // "ORA-00942", "ERR_1001"
}

func isHexID(part string, before byte) bool {
	least := minHexID
	if before == '#' || before == '@' {
		least = minTaggedHexID
	}
	lower := hasLower(part)
	return isHexWord(part, least) && !(lower && hasUpper(part)) && (!allDigits(letters.trimLeft(part)) || lower && len(part) >= minPlainHexID)
}

// numberInWord finds an id within a word: "Job12345Failed", "Error8f3a9c".
func numberInWord(word string) (start, end int) {
	first := 0
	for first < len(word) && !isDigit(word[first]) {
		first++
	}
	if tail := word[first:]; isHexID(tail, 0) && !hasUpper(tail) && hasDigit(tail[1:]) {
		return first, len(word)
	}
	for start = first; start < len(word); start = end + 1 {
		end = start + countDigits(word[start:])
		if end-start >= minInnerNumber && !isUpperWord(word[:start]) && !isJavaCounted(word[:start]) && word[start:end] != curve {
			return start, end
		}
	}
	return len(word), len(word)
}

// isUUID reports whether a UUID begins at i.
func isUUID(s string, i int) bool {
	end := i + uuidLength
	if len(s) < end || i > 0 && isHex(s[i-1]) || end < len(s) && isHex(s[end]) {
		return false
	}
	for k := range uuidLength {
		c := s[i+k]
		if dash := k == 8 || k == 13 || k == 18 || k == 23; dash && c != '-' && c != '_' || !dash && !isHex(c) {
			return false
		}
	}
	return true
}

// isUpperWord reports whether s has only upper-case letters.
func isUpperWord(s string) bool { return marksOf(s) == kinds['A'] }

func isAlnum(c byte) bool { return isAlpha(c) || isDigit(c) }

func hasUpper(s string) bool { return marksOf(s).has('A') }
func hasLower(s string) bool { return smallLetters.occursIn(s) }

// hasLetter reports whether s holds more than digits and punctuation.
func hasLetter(s string) bool { return letters.occursIn(s) }

// AppendType appends an error's type without what differs between
// occurrences, and without what not all senders of the language name.
func (l Language) AppendType(dst []byte, typ string) []byte {
	switch {
	case l == Java && len(typ) <= maxLine && marksOf(typ)&^plainType == 0: // as most are
		return append(dst, typ...)
	case l == Python: // loggers name the module, tracebacks of it may not
		typ = dots.afterLast(typ)
	case l == Go && goPlainErrors[typ]: // it only has a message
		return dst
	case l == Native && memoryFault(typ): // which word a build or a system has for it is chance
		return append(dst, "memory fault"...)
	}
	typ = withoutGenerated(Clip(FirstLine(typ), maxLine))
	if !hasDigit(typ) {
		return append(dst, typ...)
	}
	return appendWithoutIDs(dst, typ)
}
