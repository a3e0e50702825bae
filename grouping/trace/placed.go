package trace

import "strings"

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

// placeMarks are in each place, and notInName in no name of a function.
var placeMarks, notInName = marksOf(".0"), marksOf("\"{}=,")

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

// maxPlacedWords is how many words a call has beside "at", "line" and the like; prose has more.
const maxPlacedWords = 2

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

var placeBreaks = marksOf(" \t\"'`([{<,;|=")

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
	head, digits, ok := cutLast(before, "line ")
	if n := countDigits(digits); ok && n > 0 && len(digits)-n <= len(" of \"") {
		return number(digits[:n]), head, after
	}
	return 0, before, after
}

// placeEnd may follow a line number: a column, the end of parentheses.
var placeEnd = marksOf("0123456789:,)\"'")

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

var nameEnds = marksOf(".,;:!?()[]{}<>|-'")

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

var placedLibraries = partsOf(strings.Fields("/vendor/ /deps/ /.nimble/ /.opam/ /opam/ /zig/lib/ /crystal/src/ /toolchains/ /node_modules/ /packages/")...)
