package trace

import "strings"

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
	lines []line
	spare []line // the lines without their prefix
}

// collect splits the pieces into lines. Traces flattened into one line are split as well.
func (t *text) collect(pieces []string) {
	for _, piece := range pieces {
		l := newLine(piece)
		if l.has.has('\\') && isEscaped(piece) {
			piece = jsonEscapes.Replace(piece)
			l = newLine(piece)
		}
		if !l.has.has('\n') && !strings.HasPrefix(piece, "{") && !strings.HasPrefix(piece, `\t`) { // as most are
			t.split(l)
			continue
		}
		for one := range strings.SplitSeq(piece, "\n") {
			if strings.HasPrefix(one, `\t`) {
				one = jsonEscapes.Replace(one)
			}
			t.split(newLine(withoutColors(fromContainer(one))))
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
	for l.string != "" && termMarks.has(l.string[0]) {
		i := strings.Index(l.string, erlangNext)
		if i < 0 {
			break
		}
		t.keep(newLine(l.string[:i+len("]},")]))
		l.string = l.string[i+len("]},"):]
	}
	for flatMarks&^l.has == 0 {
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
	if !array {
		return false
	}
	var f Frame
	if first, _, several := strings.Cut(calls, ", "); !several || !javaFrame(newLine(first), &f) {
		return false
	}
	for call := range strings.SplitSeq(strings.TrimSuffix(calls, "]"), ", ") {
		t.keep(newLine(call))
	}
	return true
}

// erlangNext separates calls that Erlang prints on one line.
const erlangNext = "]},{"

// termMarks begin an Erlang term or its report.
var termMarks = marksOf("{[*")

// isCall distinguishes calls, "a.B.c(B.java:1)" and "a.js:1:2", from "f.c:3", the place of one.
func isCall(s string) bool {
	_, _, column, _ := cutPosition(s)
	return column > 0 || strings.IndexByte(s[:min(len(s), maxLine)], '(') >= 0
}

// flatMarks are in each line that holds several calls.
var flatMarks = marksOf(") at ")

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
