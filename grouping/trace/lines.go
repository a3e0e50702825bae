package trace

import "strings"

// line is a line of a trace, and what is in it.
type line struct {
	string
	has marks
}

func newLine(s string) line { return line{s, marksOf(s)} }

// text is the lines of a trace.
type text struct {
	lines []line
	spare []line // the lines without their prefix
}

// collect splits the pieces into lines. Traces flattened into one line are split as well.
func (t *text) collect(pieces []string) {
	for _, piece := range pieces {
		if isPlain(piece) {
			t.line(trimEnd(piece))
			continue
		}
		if isEscaped(piece) {
			piece = jsonEscapes.Replace(piece)
		}
		for line := range strings.SplitSeq(piece, "\n") {
			if strings.HasPrefix(line, `\t`) {
				line = jsonEscapes.Replace(line)
			}
			t.line(trimEnd(withoutColors(fromContainer(line))))
		}
	}
}

// isPlain reports whether a piece is a line to be read as it is, as most are.
func isPlain(piece string) bool {
	return !strings.HasPrefix(piece, "{") && strings.IndexByte(piece, '\\') < 0 && strings.IndexByte(piece, '\n') < 0 && strings.IndexByte(piece, escape[0]) < 0
}

func (t *text) line(line string) {
	if t.elements(line) {
		return
	}
	for line != "" && termMarks.has(line[0]) {
		i := strings.Index(line, erlangNext)
		if i < 0 {
			break
		}
		t.keep(line[:i+len("]},")])
		line = line[i+len("]},"):]
	}
	for end := strings.IndexByte(line, ')'); end >= 0 && end+len(") at ") < len(line); end = strings.IndexByte(line, ')') {
		i := strings.Index(line, ") at ")
		if i < 0 || strings.Contains(line[:i], "frame #") || !isCall(line[i+len(") at "):]) {
			break
		}
		if first := strings.Index(line[:i], " at "); first > 0 && first > leadingSpace(line) {
			t.keep(line[:first])
			line, i = line[first+1:], i-first-1
		}
		t.keep(line[:i+1])
		line = line[i+2:]
	}
	if line != "" {
		t.keep(line)
	}
}

// elements keeps the calls of "[a.B.c(B.java:1), d.E.f(E.java:2)]", as Java prints an array of them.
func (t *text) elements(s string) bool {
	calls, array := strings.CutPrefix(s, "[")
	if !array {
		return false
	}
	var f Frame
	if first, _, several := strings.Cut(calls, ", "); !several || !javaFrame(line{string: first}, &f) {
		return false
	}
	for call := range strings.SplitSeq(strings.TrimSuffix(calls, "]"), ", ") {
		t.keep(call)
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

// keep adds a line. Of too many, middle ones are dropped.
func (t *text) keep(s string) {
	if len(t.lines) == maxLines+maxLines/2 {
		t.lines = append(t.lines[:maxLines/2], t.lines[maxLines:]...)
	}
	t.lines = append(t.lines, newLine(Clip(s, maxLine)))
}
