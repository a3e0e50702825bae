package trace

import (
	"slices"
	"strings"
)

// Span is an exception of the chain, with its frames.
type Span struct {
	Type, Message string
	First, End    int // of its frames
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

func (t *Trace) add(f Frame) {
	if t.skip >= 0 || t.ignoring {
		return
	}
	s := &t.spans[t.open]
	if n := len(t.frames); f.Function == "" && s.End > s.First && t.frames[n-1].File == "" && t.syntax.has(twoLines) {
		call := &t.frames[n-1]
		call.File, call.Line, call.Column = f.File, f.Line, f.Column
		if call.Module == "" {
			call.Module = f.Module
		}
		return
	}
	if f.Module == goQuoted || t.syntax.has(placeFirst) && f.File == "" {
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
	if t.syntax.has(crashLast) {
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
	case typ == s.Type || genericErrors[typ]:
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
