package trace

import (
	"cmp"
	"slices"
	"strings"
)

// Span is an exception of the chain, with its frames.
type Span struct {
	Type, Message string
	First, End    int // of its frames
}

// withNext is the mark with the line below, if there is one.
func (m mark) withNext(below []line) mark {
	switch {
	case len(below) == 0:
		return m
	case m.kind == messageBelow:
		return mark{header, m.typ, below[0].string}
	case m.kind == headerBelow:
		return markOf(header, below[0].string)
	case m.kind == causeBelow:
		return markOf(cause, below[0].string)
	}
	return m
}

// below is the mark of a line that names the error below its calls.
func (m mark) below() mark {
	if m.kind == header || m.kind == opening {
		m.kind = trailer
	}
	return m
}

// chain is the exceptions of a trace. It is made line by line.
type chain struct {
	syntax *syntax
	frames []Frame
	spans  []Span // the root cause first

	open     int   // the span being read
	skip     int   // indentation of the suppressed exception being read; -1 outside
	ignoring bool  // frames belong to no exception until a new stack begins
	place    Frame // of a syntax error, which is no call
}

func (c *chain) add(f *Frame) {
	if c.skip >= 0 || c.ignoring {
		return
	}
	s, last := &c.spans[c.open], &Frame{}
	if n := len(c.frames); n > 0 {
		last = &c.frames[n-1]
	}
	switch {
	case f.Function == "" && s.End > s.First && last.File == "" && c.syntax.has(twoLines):
		last.File, last.Line, last.Column = f.File, f.Line, f.Column
		last.Module = cmp.Or(last.Module, f.Module)
	case f.Module == goQuoted || c.syntax.has(placeFirst) && f.File == "": // the name of a call whose place alone is known
		if last.Function == "" {
			last.Module, last.Function = f.Module, f.Function
		}
	default:
		c.frames = append(c.frames, *f)
		s.End = len(c.frames)
	}
}

// apply applies a mark. It returns false where the trace ends.
func (c *chain) apply(m mark, line string) bool {
	if m.kind == suppressed {
		c.skip = leadingSpace(line)
		return true
	}
	if c.skip >= 0 && (m.kind != cause || leadingSpace(line) > 0 && leadingSpace(line) >= c.skip) {
		return true
	}
	c.skip = -1
	open := &c.spans[c.open]
	empty := open.First == open.End
	switch m.kind {
	case header, trailer:
		if empty && m.kind == header || !empty && m.kind == trailer && open.Type == "" {
			open.Type, open.Message = m.typ, m.message
		}
	case opening:
		if m.kind = cause; !empty {
			c.begin(m)
		} else {
			open.Type, open.Message = m.typ, m.message
		}
	case wrapper, another:
		if !empty && (m.kind == wrapper || open.Type != "") {
			c.begin(m)
		}
	case cause:
		c.begin(m)
	case otherStack:
		c.ignoring = true
	case stack, errorEnd:
		c.ignoring = c.ignoring && m.kind == errorEnd
		return empty
	case threadDump:
		c.frames, c.spans, c.open = c.frames[:0], append(c.spans[:0], Span{}), 0
		return false
	}
	return true
}

// begin opens a cause of the exceptions so far, or one around them.
func (c *chain) begin(m mark) {
	if len(c.spans) == maxSpans {
		return
	}
	c.ignoring = false
	s := Span{m.typ, m.message, len(c.frames), len(c.frames)}
	if m.kind == cause {
		c.spans, c.open = slices.Insert(c.spans, 0, s), 0
		return
	}
	c.spans, c.open = append(c.spans, s), len(c.spans)
}

// order puts each exception's innermost call first, and gives the outermost exception the type and message that were
// sent; alone: without a trace.
func (c *chain) order(typ, message string, alone bool) {
	if c.syntax.has(crashLast) {
		for _, s := range c.spans {
			slices.Reverse(c.frames[s.First:s.End])
		}
	}
	outermost := &c.spans[len(c.spans)-1]
	if typ != "" {
		outermost.Type = typ
	}
	if line := FirstLine(message); line != "" && !(outermost.Message != "" && alone) {
		outermost.Message = line
	}
	outermost.cutPrefix()
	if c.syntax.named != nil {
		for i := range c.spans {
			c.syntax.named(&c.spans[i])
		}
	}
}

// cutPrefix takes what runtimes print before an error, and its own type, off a message: "Uncaught TypeError: x".
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

// insertPlace inserts the place of a syntax error before the calls that read the file, or of an error without calls
// where calls would be.
func (c *chain) insertPlace() {
	root := &c.spans[0]
	if c.place.File == "" || len(c.frames) > 0 && !endsWithAny(root.Type, "SyntaxError", "ParseError", "CompileError") {
		return
	}
	c.frames = slices.Insert(c.frames, root.First, c.place)
	root.End++
	for i := range c.spans[1:] {
		if s := &c.spans[i+1]; s.First >= root.First {
			s.First, s.End = s.First+1, s.End+1
		}
	}
}

// Root is the innermost exception with frames. If it has no type, that of the exception around it counts.
func (c *chain) Root() Span {
	for i, s := range c.spans {
		for _, around := range c.spans[i:] {
			if s.Type == "" {
				s.Type, s.Message = around.Type, around.Message
			}
		}
		if s.First < s.End {
			return s
		}
	}
	return c.Outermost()
}

// Outermost is the last exception of the chain.
func (c *chain) Outermost() Span { return c.spans[len(c.spans)-1] }

// Spans are the exceptions of the chain, the root cause first.
func (c *chain) Spans() []Span { return c.spans }

// Frames are those of all spans, each one's innermost first.
func (c *chain) Frames() []Frame { return c.frames }

// Language is the one that was recognized.
func (c *chain) Language() Language { return c.syntax.language }

// Unwrapped returns s under the name of the error that it is about: log lines, remote calls and wrappers name it only
// in their text.
func (s Span) Unwrapped() Span {
	for range maxNested {
		typ, message, ok := nestedError(s.Message)
		if !isErrorName(s.Type) || strings.Contains(s.Message, "failure: Lost task ") { // by Spark
			for rest, found := s.Message, true; found && !ok; { // "cannot report: java.io.IOException: broken pipe"
				_, rest, found = strings.Cut(rest, ": ")
				typ, message, ok = nestedError(rest)
			}
		}
		if !ok {
			break
		}
		s.Type, s.Message = typ, message
	}
	switch s.Message {
	case "null", "None", "nil", "undefined": // how languages print an absent message
		s.Message = ""
	}
	return s
}

// nestedError reads a message that is another error: "java.io.IOException: broken pipe".
func nestedError(message string) (typ, rest string, ok bool) {
	typ, rest, ok = typeAndMessage(message)
	return typ, rest, ok && isErrorName(typ) && !genericErrors[typ]
}

// genericErrors are names that only mean error.
var genericErrors = wordSet("Error Exception Failure Fault Warning")
