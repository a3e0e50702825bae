package trace

import (
	"bytes"
	"slices"
	"strings"
)

// Bounds that keep an error's cost linear and small.
const (
	maxLines  = 1024 // of a trace; of a longer one, the first and the last half
	maxLine   = 2048 // bytes of a line
	maxWindow = 8    // distance of frames within which a repetition is recursion
	maxSpans  = 64   // exceptions of a chain
)

// MaxShown is how many frames of one exception are shown.
const MaxShown = 100

// Frames of an exception that count. Those between are dropped.
const (
	traceHead = 50 // the innermost
	traceTail = 10 // the outermost
)

// Trace is a parsed stack trace. It reuses its memory.
type Trace struct {
	syntax   *syntax
	lines    []string
	spare    []string // the lines without their prefix
	frames   []Frame
	spans    []Span  // the root cause first
	names    []byte  // identities, one after another
	idents   []ident // where each frame's identity is in names, once asked for
	site     []int   // the frames that locate the error, the innermost first
	repeated []bool  // per element of site: recursion repeated it

	open     int   // the span being read
	skip     int   // indentation of the suppressed exception being read; -1 outside
	ignoring bool  // frames belong to no exception until a new stack begins
	place    Frame // of a syntax error, which is no call

	libraries map[string]bool // of the project
}

// ident is where an identity is in names.
type ident struct{ start, end int }

// unnamed is that of a frame whose identity nobody asked for yet.
var unnamed = ident{start: -1}

// Span is an exception of the chain, with its frames.
type Span struct {
	Type, Message string
	First, End    int // of its frames
}

// sent is what was sent of an error.
type sent struct {
	typ, message string
	pieces       []string // of a trace; one may hold many lines
}

// stack returns the pieces that hold the trace.
// Some senders put all of it into the message.
func (e *sent) stack() []string {
	if !e.inMessage() || strings.IndexByte(e.message, '\n') < 0 {
		return e.pieces
	}
	return []string{e.message}
}

// inMessage reports whether a trace can only be in the message.
func (e *sent) inMessage() bool {
	for _, piece := range e.pieces {
		if strings.TrimSpace(piece) != "" {
			return false
		}
	}
	return true
}

// Read reads an error with the pieces of its trace, as they were
// sent. Packages in libraries are not the sender's own code.
func (t *Trace) Read(typ, message string, pieces []string, libraries map[string]bool) {
	e := &sent{typ, message, pieces}
	t.reset()
	t.libraries = libraries
	t.collect(e.stack())
	if t.detect(); t.syntax.language == Unknown && e.inMessage() {
		t.lines, t.syntax = t.lines[:0], &unknownSyntax // a message of several lines, but no trace
	}
	t.spans = append(t.spans, Span{})
	t.read()
	t.order(e)
	t.nameUnknown()
	t.insertPlace()
	t.judge()
	t.locate()
}

// detect finds the syntax, if need be behind a prefix of all lines.
// What all lines share may be more than the prefix: "web_1 | at".
func (t *Trace) detect() {
	t.syntax = detect(t.lines)
	if t.syntax != &unknownSyntax && !isCollected(t.lines) {
		return
	}
	words := commonWords(t.lines)
	for least := max(1, words-maxCommon); words >= least; words-- {
		t.spare = withoutWords(t.spare[:0], t.lines, words)
		if s := detect(t.spare[:min(len(t.spare), prefixLines)]); s != &unknownSyntax {
			t.syntax, t.lines, t.spare = s, t.spare, t.lines
			return
		}
	}
	if t.syntax == &unknownSyntax && len(t.lines) > 0 {
		t.syntax = detectPlaced(t.lines)
	}
}

// withNext is the mark with the line below.
func (m mark) withNext(line string) mark {
	switch m.kind {
	case messageBelow:
		return mark{header, m.typ, line}
	case headerBelow:
		return markOf(header, line)
	case causeBelow:
		return markOf(cause, line)
	}
	return m
}

func (t *Trace) reset() {
	t.lines, t.frames, t.spans = t.lines[:0], t.frames[:0], t.spans[:0]
	t.names, t.open, t.skip, t.ignoring, t.place = t.names[:0], 0, -1, false, Frame{}
}

func (t *Trace) read() {
	for i, line := range t.lines {
		f, ok := t.syntax.frame(line)
		if ok && t.syntax.opens == nil {
			t.add(f)
			continue
		}
		m := mark{}
		if ok {
			m = t.syntax.opens(line)
		} else {
			if t.syntax.place != nil && t.place.File == "" {
				t.place = t.syntax.place(line)
			}
			m = t.syntax.markOf(line)
		}
		if i+1 < len(t.lines) {
			m = m.withNext(t.lines[i+1])
		}
		if m.kind != noMark && !t.apply(m, line) {
			return
		}
		if ok {
			t.add(f)
		}
	}
}

// collect splits the pieces into lines. Traces
// flattened into one line are split as well.
func (t *Trace) collect(pieces []string) {
	for _, piece := range pieces {
		escaped := isEscaped(piece)
		for more := true; more; {
			var line string
			line, piece, more = cutLine(piece, escaped)
			if strings.HasPrefix(line, `\t`) {
				line = unescapedLine(line)
			}
			t.line(trimEnd(withoutColors(fromContainer(line))))
		}
	}
}

func (t *Trace) line(line string) {
	if elements, ok := strings.CutPrefix(line, "["); ok {
		line = t.elements(line, elements)
	}
	for isTerm(line) {
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

// elements keeps the calls of "[a.B.c(B.java:1), d.E.f(E.java:2)]", as
// Java prints an array of them, but for the last, which it returns.
func (t *Trace) elements(line, elements string) (last string) {
	last = line
	for end := strings.Index(elements, "), "); end > 0; end = strings.Index(elements, "), ") {
		if _, ok := javaFrame(elements[:end+1]); !ok {
			break
		}
		t.keep(elements[:end+1])
		elements = elements[end+len("), "):]
		last = strings.TrimSuffix(elements, "]")
	}
	return last
}

// erlangNext separates calls that Erlang prints on one line.
const erlangNext = "]},{"

// isTerm reports whether a line begins an Erlang term or its report.
func isTerm(line string) bool {
	return line != "" && (line[0] == '{' || line[0] == '[' || line[0] == '*')
}

// isCall distinguishes calls, "a.B.c(B.java:1)"
// and "a.js:1:2", from "f.c:3", the place of one.
func isCall(s string) bool {
	if strings.IndexByte(s[:min(len(s), maxLine)], '(') >= 0 {
		return true
	}
	_, _, column, _ := cutPosition(s)
	return column > 0
}

// keep adds a line. Of too many, middle ones are dropped.
func (t *Trace) keep(line string) {
	if len(t.lines) == maxLines+maxLines/2 {
		t.lines = append(t.lines[:maxLines/2], t.lines[maxLines:]...)
	}
	t.lines = append(t.lines, Clip(line, maxLine))
}

func (t *Trace) add(f Frame) {
	if t.skip >= 0 || t.ignoring {
		return
	}
	s := &t.spans[t.open]
	if n := len(t.frames); f.Function == "" && s.End > s.First && t.frames[n-1].File == "" && t.syntax.twoLines {
		call := &t.frames[n-1]
		call.File, call.Line, call.Column = f.File, f.Line, f.Column
		if call.Module == "" {
			call.Module = f.Module
		}
		return
	}
	if f.Module == goQuoted || t.syntax.placeFirst && f.File == "" {
		t.nameLast(f)
		return
	}
	t.frames = append(t.frames, f)
	s.End = len(t.frames)
}

// nameLast names the last call, whose place alone is known.
func (t *Trace) nameLast(f Frame) {
	if n := len(t.frames); n > 0 && t.frames[n-1].Function == "" {
		t.frames[n-1].Module, t.frames[n-1].Function = f.Module, f.Function
	}
}

// apply applies a mark. It returns false where the trace ends.
func (t *Trace) apply(m mark, line string) bool {
	if m.kind == suppressed {
		t.skip = leadingSpace(line)
		return true
	}
	if t.skip >= 0 && (m.kind != cause || leadingSpace(line) > 0 && leadingSpace(line) >= t.skip) {
		return true
	}
	t.skip = -1
	open := &t.spans[t.open]
	empty := open.First == open.End
	switch m.kind {
	case header:
		if empty {
			open.Type, open.Message = m.typ, m.message
		}
	case trailer:
		if !empty && open.Type == "" {
			open.Type, open.Message = m.typ, m.message
		}
	case opening:
		if m.kind = cause; !empty {
			t.begin(m)
		} else {
			open.Type, open.Message = m.typ, m.message
		}
	case wrapper:
		if !empty || m.typ != "" {
			t.begin(m)
		}
	case another:
		if !empty && open.Type != "" {
			t.begin(m)
		}
	case cause:
		t.begin(m)
	case otherStack:
		t.ignoring = true
	case stack:
		t.ignoring = false
		return empty
	case errorEnd:
		return empty
	case threadDump:
		t.frames, t.spans, t.open = t.frames[:0], append(t.spans[:0], Span{}), 0
		return false
	}
	return true
}

// begin opens a cause of the exceptions so far, or one around them.
func (t *Trace) begin(m mark) {
	if len(t.spans) == maxSpans {
		return
	}
	t.ignoring = false
	s := Span{m.typ, m.message, len(t.frames), len(t.frames)}
	if m.kind == cause {
		t.spans, t.open = slices.Insert(t.spans, 0, s), 0
		return
	}
	t.spans, t.open = append(t.spans, s), len(t.spans)
}

// order puts each exception's innermost call first, and gives
// the outermost exception the type and message that were sent.
func (t *Trace) order(e *sent) {
	if t.syntax.crashLast {
		for _, s := range t.spans {
			slices.Reverse(t.frames[s.First:s.End])
		}
	}
	outermost := &t.spans[len(t.spans)-1]
	if e.typ != "" {
		outermost.Type = e.typ
	}
	if line := FirstLine(e.message); line != "" && !(outermost.Message != "" && e.inMessage()) {
		outermost.Message = line
	}
	outermost.cutPrefix()
	if t.syntax.named != nil {
		for i := range t.spans {
			t.syntax.named(&t.spans[i])
		}
	}
}

// cutPrefix takes what runtimes print before an error, and
// its own type, off a message: "Uncaught TypeError: x".
func (s *Span) cutPrefix() {
	s.withoutBanner()
	s.Message = withoutBegins(s.Message, "Uncaught ", "(in promise) ", "  what():  ")
	typ, rest, ok := typeAndMessage(s.Message)
	switch {
	case !ok:
	case s.Type == "" && isErrorName(typ):
		s.Type, s.Message = typ, rest
	case typ == s.Type || isGenericError(typ):
		s.Message = rest
	}
}

// insertPlace inserts the place of a syntax error before the calls that
// read the file, or of an error without calls where calls would be.
func (t *Trace) insertPlace() {
	root := &t.spans[0]
	if t.place.File == "" || !isSyntaxError(root.Type) && len(t.frames) > 0 {
		return
	}
	t.frames = slices.Insert(t.frames, root.First, t.place)
	root.End++
	for i := range t.spans[1:] {
		if s := &t.spans[i+1]; s.First >= root.First {
			s.First, s.End = s.First+1, s.End+1
		}
	}
}

func isSyntaxError(typ string) bool {
	return strings.HasSuffix(typ, "SyntaxError") || strings.HasSuffix(typ, "ParseError") || typ == "CompileError"
}

// judge marks the sender's own frames. Of a thousand
// calls, only those that count or are shown are examined.
func (t *Trace) judge() {
	t.idents = slices.Grow(t.idents[:0], len(t.frames))[:len(t.frames)]
	for _, s := range t.spans {
		module, own := "", false // of the frame before
		for i := s.First; i < s.End; i++ {
			t.idents[i] = unnamed
			if t.IsMiddle(s, i) {
				t.idents[i] = ident{}
				if t.syntax.own == nil && i >= s.First+MaxShown {
					continue
				}
			}
			f := &t.frames[i]
			if t.syntax.home == nil || f.Module != module || module == "" {
				own = t.syntax.inApp(f) && !t.isLibrary(f)
			}
			f.InApp, module = own, f.Module
		}
		if frames := t.frames[s.First:s.End]; t.syntax.own != nil && len(frames) > 0 {
			t.syntax.own(frames)
		}
	}
}

// Load takes an error that was read before.
func (t *Trace) Load(language Language, exceptions []Exception) {
	t.reset()
	t.syntax, t.libraries = syntaxOf(language), nil
	for _, e := range exceptions {
		s := Span{e.Type, e.Message, len(t.frames), len(t.frames) + len(e.Frames)}
		t.frames, t.spans = append(t.frames, e.Frames...), append(t.spans, s)
	}
	t.judge()
	t.locate()
}

// Language is the one that was recognized.
func (t *Trace) Language() Language { return t.syntax.language }

// Spans are the exceptions of the chain, the root cause first.
func (t *Trace) Spans() []Span { return t.spans }

// Frames are those of all spans, each one's innermost first.
func (t *Trace) Frames() []Frame { return t.frames }

// Site are the frames that locate the error, the innermost
// first; none without a usable trace.
func (t *Trace) Site() []int { return t.site }

// Repeated reports whether recursion repeated the nth frame of the site.
func (t *Trace) Repeated(n int) bool { return t.repeated[n] }

// Root is the innermost exception with frames. If it
// has no type, that of the exception around it counts.
func (t *Trace) Root() Span {
	for i, s := range t.spans {
		if s.First == s.End {
			continue
		}
		for _, around := range t.spans[i:] {
			if s.Type == "" {
				s.Type, s.Message = around.Type, around.Message
			}
		}
		return s
	}
	return t.Outermost()
}

// Outermost is the last exception of the chain.
func (t *Trace) Outermost() Span { return t.spans[len(t.spans)-1] }

// Identity names frame i in every occurrence; empty if it does not count.
func (t *Trace) Identity(i int) []byte {
	at := &t.idents[i]
	if *at == unnamed {
		at.start = len(t.names)
		t.names = t.syntax.identity(t.names, &t.frames[i])
		at.end = len(t.names)
	}
	return t.names[at.start:at.end]
}

// locate chooses the frames that locate the error: own ones of the root
// cause, else of the exceptions around it, else all of the root cause.
func (t *Trace) locate() {
	for _, choice := range [...]choice{ownNamed, own, anyFrame} {
		for _, s := range t.spans {
			t.site, t.repeated = t.site[:0], t.repeated[:0]
			for i := s.First; i < s.End; i++ {
				if t.chosen(i, choice) && !t.IsMiddle(s, i) {
					t.visit(i)
				}
			}
			if len(t.site) > 0 {
				return
			}
		}
	}
}

// choice selects the frames that count.
type choice uint8

const (
	ownNamed choice = iota // own ones, but those that engines name differently
	own
	anyFrame
)

func (t *Trace) chosen(i int, c choice) bool {
	f := &t.frames[i]
	switch c {
	case ownNamed:
		return f.InApp && !(t.syntax.language == JavaScript && isRemote(f.File) && bytes.HasSuffix(t.Identity(i), []byte{':'}))
	case own:
		return f.InApp
	}
	return true
}

// IsMiddle reports whether frame i is too far
// from both ends of its exception to count.
func (t *Trace) IsMiddle(s Span, i int) bool { return i >= s.First+traceHead && i < s.End-traceTail }

// visit adds frame i to the site unless recursion already did.
func (t *Trace) visit(i int) {
	name := t.Identity(i)
	if len(name) == 0 {
		return
	}
	for back := len(t.site) - 1; back >= 0 && back >= len(t.site)-maxWindow; back-- {
		if at := t.idents[t.site[back]]; string(t.names[at.start:at.end]) == string(name) {
			t.repeated[back] = true
			return
		}
	}
	t.site, t.repeated = append(t.site, i), append(t.repeated, false)
}
