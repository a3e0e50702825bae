package trace

import (
	"bytes"
	"slices"
	"strings"
)

// Frames of an exception that count. Those between are dropped.
const (
	traceHead = 50 // the innermost
	traceTail = 10 // the outermost
)

// ident is where an identity is in names.
type ident struct{ start, end int }

// unnamed is that of a frame whose identity nobody asked for yet.
var unnamed = ident{start: -1}

// judge marks the sender's own frames. Of a thousand calls, only those that count or are shown are examined, and where
// modules tell own code, the calls of one package once.
func (t *Trace) judge() {
	t.idents = slices.Grow(t.idents[:0], len(t.frames))[:len(t.frames)]
	for _, s := range t.spans {
		home, own := "", false // of the frame before
		for i := s.First; i < s.End; i++ {
			t.idents[i] = unnamed
			if s.IsMiddle(i) {
				t.idents[i] = ident{}
				if t.syntax.own == nil && i >= s.First+MaxShown {
					continue
				}
			}
			f := &t.frames[i]
			if t.syntax.home == nil || !isWithin(f.Module, home) {
				own = t.syntax.inApp(f) && !t.syntax.isLearned(f, t.libraries)
				home = withoutLast(f.Module)
			}
			f.InApp = own
		}
		if frames := t.frames[s.First:s.End]; t.syntax.own != nil && len(frames) > 0 {
			t.syntax.own(frames)
		}
		if t.rules != nil {
			t.rule(s)
		}
	}
}

// isWithin reports whether a class is in this package itself.
func isWithin(class, home string) bool {
	return home != "" && len(class) > len(home) && class[len(home)] == '.' && class[:len(home)] == home && strings.IndexByte(class[len(home)+1:], '.') < 0
}

// Site are the frames that locate the error, the innermost first; none without a usable trace.
func (t *Trace) Site() []int { return t.site }

// Repeated reports whether recursion repeated the nth frame of the site.
func (t *Trace) Repeated(n int) bool { return t.repeated[n] }

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

// locate chooses the frames that locate the error: own ones of the root cause, else of the exceptions around it, else
// all of the root cause.
func (t *Trace) locate() {
	for _, choice := range [...]choice{ownNamed, own, anyFrame} {
		for _, s := range t.spans {
			t.site, t.repeated = t.site[:0], t.repeated[:0]
			for i := s.First; i < s.End; i++ {
				f := &t.frames[i]
				counts := f.InApp || choice == anyFrame
				if choice == ownNamed && counts && t.syntax.language == JavaScript && isRemote(f.File) {
					counts = !bytes.HasSuffix(t.Identity(i), []byte{':'})
				}
				if counts && !s.IsMiddle(i) {
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

// IsMiddle reports whether frame i is too far from both ends of its exception to count.
func (s Span) IsMiddle(i int) bool { return i >= s.First+traceHead && i < s.End-traceTail }

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
