// Package trace reads errors as runtimes print them: it recognizes the language of a stack trace, parses its exceptions
// and frames, tells own code from libraries, and takes what differs between two occurrences of one fault out of calls,
// types and messages. It stands on the standard library and on lists of words.
package trace

import (
	"slices"
	"strings"
)

// Bounds that keep an error's cost linear and small.
const (
	maxLines   = 1024     // of a trace; of a longer one, the first and the last half
	maxLine    = 2048     // bytes of a line
	maxWindow  = 8        // distance of frames within which a repetition is recursion
	maxSpans   = 64       // exceptions of a chain
	maxDecoded = 64 << 10 // bytes of decoded text whose memory is used for the next error
	maxNested  = 4        // errors that a message names, one in the other
	MaxShown   = 100      // frames of an exception that are shown
)

// Trace is a parsed stack trace. It reuses its memory.
type Trace struct {
	text
	scores scores
	chain
	names    []byte  // identities, one after another
	idents   []ident // where each frame's identity is in names, once asked for
	site     []int   // the frames that locate the error, the innermost first
	repeated []bool  // per element of site: recursion repeated it

	libraries map[string]bool // of the project
	rules     Rules           // of the project; nil: none
}

// Read reads an error with the pieces of its trace, as they were sent; one may hold many lines. Packages in libraries
// are not the sender's own code, and its calls may have source maps.
func (t *Trace) Read(typ, message string, pieces []string, libraries map[string]bool, mapping Mapping) {
	alone := !slices.ContainsFunc(pieces, func(piece string) bool { return strings.TrimSpace(piece) != "" })
	if alone && strings.IndexByte(message, '\n') >= 0 {
		pieces = []string{message} // as some senders do
	}
	t.reset()
	t.libraries = libraries
	t.collect(pieces)
	if t.detect(); t.syntax.language == Unknown && alone {
		t.lines, t.syntax = t.lines[:0], &unknownSyntax // a message of several lines, but no trace
	}
	t.spans = append(t.spans, Span{})
	t.read()
	t.order(typ, message, alone)
	t.nameUnknown(t.lines)
	t.insertPlace()
	t.compare(mapping)
}

// compare finds what of the exceptions is compared.
func (t *Trace) compare(mapping Mapping) {
	if t.rewrite(mapping); t.rules != nil {
		t.rules.Open(t.spans, t.frames)
	}
	t.judge()
	t.locate()
}

// detect finds the syntax, if need be behind a prefix of all lines. What all lines share may be more than the prefix:
// "web_1 | at".
func (t *Trace) detect() {
	t.syntax = t.scores.detect(t.lines)
	if t.syntax != &unknownSyntax && !isCollected(t.lines) {
		return
	}
	words := commonWords(t.lines)
	for least := max(1, words-maxCommon); words >= least; words-- {
		t.spare = withoutWords(t.spare[:0], t.lines, words)
		if s := t.scores.detect(t.spare[:min(len(t.spare), prefixLines)]); s != &unknownSyntax {
			t.syntax, t.lines, t.spare = s, t.spare, t.lines
			return
		}
	}
	t.scores.tried = t.scores.tried[:0] // of other lines
	if t.syntax == &unknownSyntax && len(t.lines) > 0 {
		t.syntax = t.scores.detectPlaced(t.lines)
	}
}

func (t *Trace) reset() {
	t.lines, t.frames, t.spans = t.lines[:0], t.frames[:0], t.spans[:0]
	if t.decoded.Reset(); t.decoded.Cap() > maxDecoded {
		t.Keep()
	}
	t.names, t.open, t.skip, t.ignoring, t.place = t.names[:0], 0, -1, false, Frame{}
}

func (t *Trace) read() {
	for i, l := range t.lines {
		f, ok := t.call(i)
		var m mark
		if !ok {
			if t.place.File == "" && !frameIn(l, &t.place, t.syntax.places) {
				t.place = Frame{}
			}
			m = t.syntax.markOf(l)
		} else if t.syntax.opens != nil {
			m = t.syntax.opens(l)
		}
		if t.syntax.language == PHP {
			f.Module, f.Function = t.unescapeName(f.Module), t.unescapeName(f.Function)
			m.typ = t.unescapeName(m.typ)
		}
		if m.kind != noMark && !t.apply(m.withNext(t.lines[i+1:]), l.string) {
			return
		}
		if ok {
			t.add(f)
		}
	}
}

// call reads the call in a line, unless detection did.
func (t *Trace) call(i int) (f *Frame, ok bool) {
	if i < len(t.scores.tried) {
		if found := &t.scores.tried[i]; found.of == nil || found.of == t.syntax {
			return &found.call, found.of != nil
		}
	}
	return &t.scores.call, t.syntax.frame(t.lines[i], &t.scores.call)
}

// Relearn looks at the error again, with other libraries.
func (t *Trace) Relearn(libraries map[string]bool) {
	t.libraries = libraries
	t.judge()
	t.locate()
}

// Load takes an error that was read before, and whose calls may have source maps.
func (t *Trace) Load(language Language, exceptions []Exception, mapping Mapping) {
	t.reset()
	t.syntax, t.libraries = syntaxOf(language), nil
	for _, e := range exceptions {
		s := Span{e.Type, e.Message, len(t.frames), len(t.frames) + len(e.Frames)}
		t.frames, t.spans = append(t.frames, e.Frames...), append(t.spans, s)
	}
	t.compare(mapping)
}
