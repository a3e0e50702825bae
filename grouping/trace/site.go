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

// ident is where an identity is in names; start: -1 if nobody asked for it yet.
type ident struct{ start, end int }

// judge marks the sender's own frames. Of a thousand calls, only those that count or are shown are examined, and where
// modules tell own code, the calls of one package once.
func (t *Trace) judge() {
	t.idents = slices.Grow(t.idents[:0], len(t.frames))[:len(t.frames)]
	for _, s := range t.spans {
		home, own := "", false // of the frame before
		for i := s.First; i < s.End; i++ {
			t.idents[i] = ident{start: -1}
			if s.IsMiddle(i) {
				t.idents[i] = ident{}
				if t.syntax.own == nil && i >= s.First+MaxShown {
					continue
				}
			}
			f := &t.frames[i]
			if in := withoutLast(f.Module); t.syntax.home == nil || in == "" || in != home {
				own, home = t.syntax.isOwn(f) && !t.syntax.isLearned(f, t.libraries), in
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

// Site are the frames that locate the error, the innermost first; none without a usable trace.
func (t *Trace) Site() []int { return t.site }

// Repeated reports whether recursion repeated the nth frame of the site.
func (t *Trace) Repeated(n int) bool { return t.repeated[n] }

// Identity names frame i in every occurrence; empty if it does not count.
func (t *Trace) Identity(i int) []byte {
	at := &t.idents[i]
	if at.start < 0 {
		at.start = len(t.names)
		t.names = t.syntax.identity(t.names, &t.frames[i])
		at.end = len(t.names)
	}
	return t.names[at.start:at.end]
}

// locate chooses the frames that locate the error: own ones of the root cause, else of the exceptions around it, else
// all of the root cause.
func (t *Trace) locate() {
	for choice := range 3 { // own ones, but those that engines name differently; own ones; all
		for _, s := range t.spans {
			t.site, t.repeated = t.site[:0], t.repeated[:0]
			for i := s.First; i < s.End; i++ {
				f := &t.frames[i]
				counts := f.InApp || choice == 2
				if choice == 0 && counts && t.syntax.language == JavaScript && isRemote(f.File) {
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

// Rules are what people say of a project's errors.
type Rules interface {
	// Open begins an error. It may change the messages of its exceptions.
	Open(spans []Span, frames []Frame)
	// Judge says what a frame is, and the number of the rule that does.
	Judge(f *Frame) (v Verdict, rule uint8)
}

// Verdict is what rules say of a frame.
type Verdict uint8

// The verdicts.
const (
	NotJudged Verdict = iota
	IsOwn
	IsLibrary
	IsIgnored // it counts as if it were absent
)

// Apply applies rules to errors that are read from now on; nil: none.
func (t *Trace) Apply(rules Rules) { t.rules = rules }

// rule has the project's rules judge the frames of an exception that count.
func (t *Trace) rule(s Span) {
	for i := s.First; i < s.End; i++ {
		if s.IsMiddle(i) {
			continue
		}
		f := &t.frames[i]
		verdict, rule := t.rules.Judge(f)
		f.Rule = rule
		if verdict != NotJudged {
			f.InApp = verdict == IsOwn
		}
		if verdict == IsIgnored {
			t.idents[i] = ident{}
		}
	}
}

// hosts are names below which each vendor has its own.
var hosts = wordSet("org.apache com.github io.github com.gitlab org.codehaus org.sourceforge net.sf net.sourceforge net.java com.google")

// javaHome is "com.acme" of "com.acme.shop.Cart", "org.apache.hive" of a class there; "" without a package.
func javaHome(class string) string {
	home := withoutLast(class)
	end := cutAt(home, min(cutAt(home, 0, '.')+1, len(home)), '.')
	if hosts[home[:end]] && end < len(home) {
		end = cutAt(home, end+1, '.')
	}
	return home[:end]
}

// withoutLast drops the last part of a dotted name.
func withoutLast(name string) string { return name[:max(strings.LastIndexByte(name, '.'), 0)] }

// cutAt is the end of the part at i of a name, up to a separator.
func cutAt(name string, i int, separator byte) int {
	if end := strings.IndexByte(name[i:], separator); end >= 0 {
		return i + end
	}
	return len(name)
}

// OwnPackage is the package of a frame that may be the sender's own, as far as neither paths nor lists exclude it; ""
// in languages where paths do.
func OwnPackage(language Language, f *Frame) string {
	if s := syntaxOf(language); s.home != nil && s.isOwn(f) {
		return s.home(f.Module)
	}
	return ""
}

// isLearned reports whether a frame is of a learned library.
func (s *syntax) isLearned(f *Frame, libraries map[string]bool) bool {
	return len(libraries) > 0 && s.home != nil && libraries[s.home(f.Module)]
}

// WhyLibrary is why frame i is a library's; "" for own code.
func (t *Trace) WhyLibrary(i int) Reason {
	switch f := &t.frames[i]; {
	case f.InApp:
		return ""
	case f.Rule != 0:
		return ByRule
	case t.syntax.isLearned(f, t.libraries) && t.syntax.isOwn(f):
		return ByErrors
	case isBelow("/"+f.File, installed...):
		return ByPath
	}
	return ByName
}
