package v2

import (
	"bytes"
	"slices"
	"strings"

	"github.com/weirlog/weir/grouping"
)

// Bounds that keep the cost of an error linear in its size and small.
const (
	maxLines  = 1024 // of a trace; of a longer one the first and the last half of this
	maxLine   = 2048 // bytes of a line
	maxWindow = 8    // frames back in which a repetition counts as recursion
)

// trace is a parsed stack trace. Its memory is reused from error to error.
type trace struct {
	syntax *syntax
	lines  []string
	frames []grouping.Frame
	spans  []span // the root cause first
	names  []byte // identities of all frames, one after another
	ends   []int  // where each frame's identity ends in names
	site   []int  // the frames that tell where the error happened, the innermost first
	looped []bool // per element of site: it came again, by recursion

	skip int // indentation of the suppressed exception that is being read; -1 outside
}

// span is one exception of the chain and where its frames are.
type span struct {
	typ, message string
	first, end   int
}

func (t *trace) parse(e *grouping.Error) {
	t.reset()
	t.collect(stack(e))
	if t.syntax = detect(t.lines); t.syntax == &unknownSyntax && len(e.StackTrace) == 0 {
		t.lines = t.lines[:0] // a message of several lines, but no trace
	}
	t.spans = append(t.spans, span{})
	for _, line := range t.lines {
		if f, ok := t.syntax.frame(line); ok {
			t.add(f)
		} else if m := t.syntax.mark(line); m.kind != noMark && !t.apply(m, line) {
			break
		}
	}
	t.order(e)
	t.name()
	t.locate()
}

func (t *trace) reset() {
	t.lines, t.frames, t.spans = t.lines[:0], t.frames[:0], t.spans[:0]
	t.names, t.ends, t.skip = t.names[:0], t.ends[:0], -1
}

// collect splits the pieces into lines. Traces that were
// flattened into one line are split as well.
func (t *trace) collect(pieces []string) {
	for _, piece := range pieces {
		for more := true; more; {
			var line string
			line, piece, more = strings.Cut(piece, "\n")
			t.line(strings.TrimRight(line, "\r \t"))
		}
	}
}

func (t *trace) line(line string) {
	for len(line) > len(") at ") {
		i := strings.Index(line, ") at ")
		if i < 0 {
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

// keep adds a line. When there are too many, those in the middle go.
func (t *trace) keep(line string) {
	if len(t.lines) == maxLines+maxLines/2 {
		t.lines = append(t.lines[:maxLines/2], t.lines[maxLines:]...)
	}
	t.lines = append(t.lines, clip(line, maxLine))
}

func (t *trace) add(f grouping.Frame) {
	if t.skip >= 0 {
		return
	}
	s := &t.spans[len(t.spans)-1]
	if n := len(t.frames); f.Function == "" && s.end > s.first && t.frames[n-1].File == "" && t.twoLines() {
		t.frames[n-1].File, t.frames[n-1].Line, t.frames[n-1].Column = f.File, f.Line, f.Column
		return
	}
	t.frames = append(t.frames, f)
	s.end = len(t.frames)
}

// twoLines reports whether the runtime prints the place of a
// call on a line of its own.
func (t *trace) twoLines() bool {
	return t.syntax.language == grouping.Go || t.syntax.language == grouping.Rust
}

// apply follows a mark; false ends the trace.
func (t *trace) apply(m mark, line string) bool {
	last := &t.spans[len(t.spans)-1]
	empty := last.first == last.end
	if m.kind == suppressed {
		t.skip = leadingSpace(line)
		return true
	}
	if t.skip >= 0 && (m.kind != cause || leadingSpace(line) > 0 && leadingSpace(line) >= t.skip) {
		return true
	}
	t.skip = -1
	switch m.kind {
	case header:
		if empty {
			last.typ, last.message = m.typ, m.message
		}
	case trailer:
		if !empty && last.typ == "" {
			last.typ, last.message = m.typ, m.message
		}
	case cause:
		t.begin(m.typ, m.message)
	case next:
		if !empty {
			t.begin("", "")
		}
	case enough:
		return empty
	case dump:
		t.frames, t.spans = t.frames[:0], append(t.spans[:0], span{})
		return false
	}
	return true
}

func (t *trace) begin(typ, message string) {
	t.spans = append(t.spans, span{typ, message, len(t.frames), len(t.frames)})
}

// order turns the chain so that the root cause comes first and
// each exception's innermost call first, and gives the outermost
// exception the name that was sent.
func (t *trace) order(e *grouping.Error) {
	if !t.syntax.causeFirst {
		slices.Reverse(t.spans)
	}
	if t.syntax.crashLast {
		for _, s := range t.spans {
			slices.Reverse(t.frames[s.first:s.end])
		}
	}
	outermost := &t.spans[len(t.spans)-1]
	if e.Type != "" {
		outermost.typ = e.Type
	}
	if line := firstLine(e.Message); line != "" {
		outermost.message = line
	}
}

// identified reports whether a type of the chain holds an id.
func (t *trace) identified() bool {
	for _, s := range t.spans {
		if hasID(clip(firstLine(s.typ), maxLine)) {
			return true
		}
	}
	return false
}

// name works out every frame's identity and whether it is the sender's own.
func (t *trace) name() {
	for i := range t.frames {
		f := &t.frames[i]
		f.InApp = t.syntax.inApp(f)
		t.names = t.syntax.identity(t.names, f)
		t.ends = append(t.ends, len(t.names))
	}
}

// identity of frame i; empty when the frame does not count.
func (t *trace) identity(i int) []byte {
	start := 0
	if i > 0 {
		start = t.ends[i-1]
	}
	return t.names[start:t.ends[i]]
}

// locate chooses the frames that tell where the error happened: those of the
// sender's own code in the root cause; where it has none, in the exceptions
// around it; where none has any, all of the root cause.
func (t *trace) locate() {
	for _, ownOnly := range [...]bool{true, false} {
		for _, s := range t.spans {
			t.site, t.looped = t.site[:0], t.looped[:0]
			for i := s.first; i < s.end; i++ {
				if t.frames[i].InApp || !ownOnly {
					t.visit(i)
				}
			}
			if len(t.site) > 0 {
				return
			}
		}
	}
}

// visit adds frame i to the site unless recursion brought it there already.
func (t *trace) visit(i int) {
	name := t.identity(i)
	if len(name) == 0 {
		return
	}
	for back := len(t.site) - 1; back >= 0 && back >= len(t.site)-maxWindow; back-- {
		if bytes.Equal(t.identity(t.site[back]), name) {
			t.looped[back] = true
			return
		}
	}
	t.site, t.looped = append(t.site, i), append(t.looped, false)
}
