package trace

import (
	"strings"
	"unicode/utf8"
)

// An unknown trace is compared line by line, without numbers, addresses and paths. What a report prints of the process,
// "Version: 1.2", counts where it has nothing else.

const (
	maxUnknownLine    = 300 // bytes of a line that are read
	minUnknownLetters = 3   // fewer have no meaning
	labelledLines     = 16  // of a report that are searched for the error's label, half of them at most
	minPlaced         = 2   // lines with a place that are calls; one may be in a message
	maxExtension      = 7   // bytes, with the dot
	maxPlacedWords    = 2   // of a call beside "at", "line" and the like; prose has more
)

func unknownFrame(l line, f *Frame) bool {
	*f = Frame{Function: Clip(strings.TrimSpace(l.string), maxUnknownLine)}
	return f.Function != ""
}

// unknownOpens reads the error that a report names: "Fatal error: no such cart".
func unknownOpens(l line) mark {
	label, value := cutLabel(strings.TrimSpace(l.string))
	if !strings.Contains(label, "rror") && !strings.Contains(label, "xception") {
		return mark{}
	}
	value = strings.TrimPrefix(value, "unhandled exception: ")    // by Nim
	if thrown, ok := strings.CutPrefix(value, "exception "); ok { // by OCaml
		typ, message, _ := strings.Cut(thrown, "(")
		return mark{header, typ, strings.TrimSuffix(message, ")")}
	}
	for _, brackets := range [...]string{"[]", "()"} { // behind the message: "no such cart (Shop::Closed)"
		message, typ, found := cutLast(value, " "+brackets[:1])
		if typ, closed := strings.CutSuffix(typ, brackets[1:]); found && closed && typ != "" && isUpper(typ[0]) && !notInType.occursIn(typ) {
			return mark{header, typ, message}
		}
	}
	return mark{kind: header, message: value}
}

func unknownInApp(f *Frame) bool {
	if f.File != "" {
		return !strings.HasPrefix(f.File, "/usr/") && !containsAny(f.File, placedLibraries)
	}
	label, _ := cutLabel(f.Function)
	return label == "" || hasPlace(f.Function)
}

// nameUnknown finds the error in a report, where nothing else names it: after a label in its first lines, or in the first
// line where several others name a place.
func (c *chain) nameUnknown(lines []line) {
	root := &c.spans[0]
	if c.syntax.language != Unknown || root.Type != "" || root.Message != "" || root.First == root.End {
		return
	}
	first := FirstLine(lines[0].string)
	if c.syntax != &unknownSyntax {
		if placedFrame(lines[0], &Frame{}) {
			return
		}
	} else {
		frames, placed := c.frames[root.First:root.End], 0
		for i := range frames {
			m := unknownOpens(line{string: frames[i].Function})
			if m.kind != noMark && i < labelledLines && i < (len(frames)+1)/2 {
				root.Message = m.message
				return
			}
			if hasPlace(frames[i].Function) {
				placed++
			}
		}
		if placed < minPlaced || hasPlace(first) || !hasLetter(first) {
			return
		}
		root.First++
	}
	root.Message = first
	if typ, message, ok := typeAndMessage(first); ok && isIdentifier(typ) {
		root.Type, root.Message = typ, message
	}
}

// hasPlace reports whether a line names a line of a file: "cart.pas:12", "Cart.hs:(12,1)", "line 12".
func hasPlace(s string) bool {
	for rest, found := s, true; found; {
		if _, rest, found = strings.Cut(rest, "ine "); countDigits(rest) > 0 && found {
			return true
		}
	}
	_, _, ok := cutPlace(s, &Frame{})
	return ok
}

// cutLabel splits "Exit code: 3". Labels are words, the first capitalized.
func cutLabel(s string) (label, value string) {
	label, value, ok := strings.Cut(s, ":")
	if padded, ok := strings.CutSuffix(label, "  "); ok { // "exception class    : EAccessViolation"
		return strings.TrimRight(padded, " "), strings.TrimSpace(value)
	}
	if !ok || label == "" || !isUpper(label[0]) || value != "" && !blanks.has(value[0]) || marksOf(label)&^inLabel != 0 {
		return "", s
	}
	return label, strings.TrimSpace(value)
}

var (
	inLabel = smallLetters | marksOf("A /")
	// Bytes between words, and those without which a word is kept as it is.
	unknownBreaks, unknownMarks = marksOf(" \t(),[]{}<>=:;'\""), marksOf("0/\\+\r\xff")
	placeMarks, notInName       = marksOf(".0"), marksOf("\"{}=,") // in each place; in no name of a function
	placeEnd                    = marksOf("0123456789:,)\"'")      // that may follow a line number: a column, the end of parentheses
	placeBreaks                 = marksOf(" \t\"'`([{<,;|=")
	nameEnds                    = marksOf(".,;:!?()[]{}<>|-'")
	placedLibraries             = partsOf("/vendor/", "/deps/", "/.nimble/", "/.opam/", "/opam/", "/zig/lib/", "/crystal/src/", "/toolchains/",
		"/node_modules/", "/packages/")
)

func unknownIdentity(dst []byte, f *Frame) []byte {
	if f.File != "" {
		return appendCall(dst, baseName(f.File), f.Function)
	}
	start, letters := len(dst), 0
	for i, s := 0, f.Function; i < len(s); {
		end, found := i, marks(0)
		for end < len(s) && !unknownBreaks.has(s[end]) {
			found |= kinds[s[end]]
			end++
		}
		if found&unknownMarks == 0 {
			dst, letters = append(dst, s[i:end]...), letters+end-i
		} else {
			dst, letters = appendUnknownWord(dst, s[i:end], letters)
		}
		if end < len(s) {
			dst = append(dst, s[end])
		}
		i = end + 1
	}
	if letters < minUnknownLetters || !hasLetter(f.Function) { // "#######"
		return dst[:start]
	}
	return dst
}

// appendUnknownWord appends a word without path and digits, and counts its letters.
func appendUnknownWord(dst []byte, word string, letters int) ([]byte, int) {
	if base := baseName(word); !allDigits(base) { // "f/2" is a name with the number of its arguments
		word = base
	}
	word = withoutOffset(word)
	address, ok := strings.CutPrefix(word, "0x")
	label, number, joined := strings.Cut(word, "-") // one of many machines, "web-27.example.net", but no code, "ORA-00942"
	machine := joined && label != "" && hasDigit(word) && !(isUpperWord(label) && allDigits(number))
	if ok && isHexTail(address) || isHexWord(word, 6) || isHexWord(word, 4) && isDigit(word[0]) || machine {
		return dst, letters
	}
	start := len(dst)
	dst = appendWithoutDigits(dst, word)
	return dst, letters + len(dst) - start
}

// Clip cuts s to at most n bytes, before a character. Invalid UTF-8 is cut anywhere.
func Clip(s string, n int) string {
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

// Traces of languages without a parser of their own. A call is a line with a function, a file and a line number, in any
// order, and hardly other words: "Cart.total (cart.pas:12)", "cart.nim(12) total", "total at cart.cr:12:3",
// `Called from Cart.total in file "cart.ml", line 12`, "total, line 12 of cart.pas".

func placedFrame(l line, f *Frame) bool {
	if placeMarks&^l.has != 0 {
		return false
	}
	s := strings.TrimSpace(l.string)
	before, after, ok := cutPlace(s[:min(len(s), maxUnknownLine)], f)
	if !ok {
		return false
	}
	words := f.nameFrom(before) + f.nameFrom(after)
	// A port may follow "db-17.shop.net".
	return f.Function != "" && words <= maxPlacedWords && strings.Count(baseName(f.File), ".") <= 1 && !notInName.occursIn(f.Function)
}

// detectPlaced returns the syntax of lines that hold calls: at least two, as one with a place may be a message. The
// error is named next to the innermost.
func (s *scores) detectPlaced(lines []line) *syntax {
	calls, named, chosen := 0, 0, &placedSyntax
	for i, l := range lines {
		s.tried = append(s.tried, tried{})
		if found := &s.tried[i]; placedFrame(l, &found.call) {
			found.of = chosen
			calls++
		} else if unknownOpens(l).kind != noMark {
			named = i
		}
	}
	switch {
	case calls < minPlaced:
		s.tried, chosen = s.tried[:0], &unknownSyntax
	case named == len(lines)-1 && s.tried[0].of != nil, strings.Contains(lines[0].string, "most recent call last"):
		chosen = &placedLastSyntax
	}
	return chosen
}

// cutPlace finds a file and a line number in s, and returns what is before and after them.
func cutPlace(s string, f *Frame) (before, after string, ok bool) {
	*f = Frame{}
	if !hasDigit(s) {
		return "", "", false
	}
	for end := 0; ; {
		dot := end + strings.IndexByte(s[end:], '.')
		if dot < end {
			return "", "", false
		}
		end = len(s) - len(smallLetters.trimLeft(s[dot+1:]))
		if n := end - dot; n > 1 && n <= maxExtension+1 && dot > 0 && isAlnum(s[dot-1]) {
			start := dot - len(placeBreaks.afterLast(s[:dot]))
			f.File = s[start:end]
			if f.Line, before, after = lineOf(s[:start], s[end:]); f.Line > 0 {
				return before, after, true
			}
		}
	}
}

// lineOf finds the line number after a file, ":12:3", "(12)", `", line 12`, or before it, "line 12 of".
func lineOf(before, after string) (line int, head, tail string) {
	if strings.HasPrefix(after, " (") { // a remark
		_, after, _ = strings.Cut(after, ")")
	}
	rest := strings.TrimLeft(after, "\"',) ")
	for _, mark := range [...]string{":(", ":", "(", "#", "line ", "at line ", "Line "} {
		digits, ok := strings.CutPrefix(rest, mark)
		if n := countDigits(digits); ok && n > 0 && (len(mark) > 2 || len(rest) == len(after)) {
			return number(digits[:n]), before, placeEnd.trimLeft(digits[n:])
		}
	}
	head, digits, ok := cutLast(before, "ine ") // "line 12 of", `Line 12, "`
	if n := countDigits(digits); ok && n > 0 && len(digits)-n <= len(" of \"") {
		return number(digits[:n]), head, after
	}
	return 0, before, after
}

// nameFrom takes the function from words around its place, and counts those that may be a function.
func (f *Frame) nameFrom(s string) (words int) {
	for s != "" {
		if s[0] == '(' { // a remark
			_, s, _ = strings.Cut(s, ")")
			continue
		}
		word, rest, _ := strings.Cut(s, " ")
		name, _, called := strings.Cut(word, "(")
		if s = rest; called && !strings.HasSuffix(word, ")") { // arguments with blanks
			_, s, _ = strings.Cut(rest, ")")
		}
		name = nameEnds.trim(name)
		if name == "" || placedWords[name] || !isAlpha(name[0]) && name[0] != '_' && name[0] != '@' || isHexWord(name, minPlainHexID) {
			continue
		}
		words++
		if f.Function == "" || called {
			f.Function = name
		}
	}
	return words
}

// placedMark reads the lines around calls: a label, or a type and a message.
func placedMark(l line) mark {
	if raised, ok := strings.CutPrefix(l.string, "raised "); ok { // by Ada
		typ, message, _ := strings.Cut(raised, " : ")
		return mark{header, typ, message}
	}
	if m := unknownOpens(l); m.kind != noMark {
		return m
	}
	return classHeader(l.string)
}

// placedLastMark reads them where the error is named below.
func placedLastMark(l line) mark { return placedMark(l).below() }
