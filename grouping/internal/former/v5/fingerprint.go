package v5

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/weirlog/weir/grouping"
)

const version = 5

// A level is how much of an error a hash covers.
type level struct {
	scope    grouping.HashScope
	frames   int
	words    int
	template bool
}

var (
	strictest = level{scope: grouping.ScopeTrace, frames: everything, words: maxWords, template: true}
	deciding  = level{scope: grouping.ScopeSite, frames: 8, words: 5}
)

// Frames that count at most.
const (
	everything = 1 << 20
	traceHead  = 50 // of each exception, the innermost
	traceTail  = 10 // of each exception, the outermost
	maxShown   = 100
)

// Grouper fingerprints errors one after another and reuses its memory. It is
// for one goroutine. Its zero value is ready.
type Grouper struct {
	sent   Error
	trace  trace
	root   span
	kind   []byte   // its type, as it is compared
	near   int      // how many frames locate it, see reach
	fault  bool     // the innermost own frame alone locates it
	circle [][]byte // the functions that endless recursion went through, where it is that
	words  wordlist // of the root cause's message
	text   []byte   // the template of that message
	key    []byte
	typ    []byte // a type without its ids
}

// Hashes are those by which this version would have found the group
// of e, in the order in which it looked.
func (g *Grouper) Hashes(e Error) []grouping.ScopedHash {
	g.sent = e
	g.trace.parse(&g.sent)
	if len(g.trace.site) == 0 {
		return []grouping.ScopedHash{g.hash(grouping.ScopeMessage, g.appendMessage(g.begin(grouping.ScopeMessage)))}
	}
	g.root = unwrapped(g.rootCause())
	g.kind = g.appendTypeName(g.kind[:0], g.root.typ)
	g.words.read(g.root.message)
	g.text = appendTemplate(g.text[:0], g.root.message, maxWords)
	g.fault = g.faulty()
	g.near = g.reach(g.share())
	g.findCircle()
	return []grouping.ScopedHash{g.at(strictest), g.at(deciding)}
}

// at hashes the error at a level.
func (g *Grouper) at(l level) grouping.ScopedHash {
	key := g.begin(l.scope)
	if l.scope == grouping.ScopeTrace {
		key = g.appendTrace(key)
	}
	return g.hash(l.scope, g.appendSite(key, l))
}

// keyEnd ends each part of a key. No text has it, except a message.
const keyEnd = '\n'

func (g *Grouper) begin(scope grouping.HashScope) []byte {
	return append(append(append(g.key[:0], '0'+version, ' '), scope...), keyEnd)
}

func (g *Grouper) hash(scope grouping.HashScope, key []byte) grouping.ScopedHash {
	g.key = key
	sum := sha256.Sum256(key)
	return grouping.ScopedHash{Version: version, Scope: scope, Hash: grouping.Hash(sum[:16])}
}

// appendTrace appends all exceptions, with a mark at the sender's own
// frames: what is own decides at looser levels.
func (g *Grouper) appendTrace(key []byte) []byte {
	t := &g.trace
	for _, s := range t.spans {
		key = append(g.appendTypeName(key, s.typ), keyEnd)
		key = append(g.appendTemplateOf(key, s.message), keyEnd)
		var last []byte
		for i := s.first; i < s.end; i++ {
			name := t.identity(i)
			if len(name) == 0 || bytes.Equal(name, last) || t.isMiddle(s, i) {
				continue
			}
			if t.frames[i].InApp {
				key = append(key, '+')
			}
			key = append(append(key, name...), keyEnd)
			last = name
		}
	}
	return key
}

// appendTemplateOf appends the template of a message; most often
// it is that of the root cause, which is known.
func (g *Grouper) appendTemplateOf(key []byte, message string) []byte {
	if message == g.root.message {
		return append(key, g.text...)
	}
	return appendTemplate(key, message, maxWords)
}

func (g *Grouper) appendSite(key []byte, l level) []byte {
	if len(g.circle) > 0 { // engines name the type differently
		return appendLines(append(key, "recursion\n"...), g.circle)
	}
	key = append(append(key, g.kind...), keyEnd)
	if !g.own() {
		key = append(key, '-')
	}
	if !g.fault {
		key = g.appendWords(key, l)
	}
	key = append(append(key, keyEnd), g.callee()...)
	for n, i := range g.deciders(l) {
		if n == g.near { // where looser levels end follows from this one
			key = append(key, keyEnd)
		}
		key = append(append(key, keyEnd), g.trace.identity(i)...)
	}
	return key
}

func (g *Grouper) appendWords(key []byte, l level) []byte {
	if l.template {
		key = append(append(key, g.text...), keyEnd)
	}
	return g.words.append(key, l.words)
}

// callee is the library's function in which own code failed, where all runtimes
// print it alike: it distinguishes two statements of one function.
func (g *Grouper) callee() []byte {
	first := g.trace.site[0]
	if !g.trace.syntax.callees || first == 0 || !g.own() {
		return nil
	}
	for _, s := range g.trace.spans {
		if s.first == first {
			return nil // nothing was called
		}
	}
	return g.trace.identity(first - 1)
}

// deciders are the frames that count at a level.
func (g *Grouper) deciders(l level) []int {
	most := l.frames
	if l != strictest {
		most = min(most, g.near)
	}
	return g.trace.site[:min(most, len(g.trace.site))]
}

// share is the part of the own frames that counts: the outer ones depend on the
// caller. Where no word of the message counts, more frames do.
func (g *Grouper) share() share {
	if len(g.words.words) == 0 || !g.own() {
		return twoThirds
	}
	return half
}

type share struct{ of, parts int }

var (
	half      = share{1, 2}
	twoThirds = share{2, 3}
)

// reach is how many frames locate the error: one where it is a fault,
// else a share of the way to the entry point. One frame of foreign code, or
// with a generic name, does not suffice.
func (g *Grouper) reach(s share) int {
	site := g.trace.site
	n := max((s.of*len(site)+s.parts-1)/s.parts, leastReach)
	switch {
	case !g.own():
		n = min(n, foreignReach)
		if g.fault {
			n = foreignFault
		}
	case g.fault:
		n = 1
	}
	for n = min(n, len(site)); n < len(site) && n < genericReach && isGeneric(g.trace.identity(site[n-1])); n++ {
	}
	return n
}

// Bounds of the frames that count.
const (
	leastReach   = 2 // the caller too, where there is one
	foreignReach = 4 // where none is the sender's own
	foreignFault = 2 // there, of a fault
	genericReach = 3 // where the innermost names are generic
)

// own reports whether the frames that count are the sender's own.
func (g *Grouper) own() bool { return g.trace.frames[g.trace.site[0]].InApp }

func (g *Grouper) appendMessage(key []byte) []byte {
	s := g.outermost()
	key = append(g.appendTypeName(key, s.typ), keyEnd)
	return appendTemplate(key, s.message, maxTemplate)
}

func appendLines(key []byte, lines [][]byte) []byte {
	for _, line := range lines {
		key = append(append(key, line...), keyEnd)
	}
	return key
}

// rootCause is the innermost exception with frames; without a
// type, that of the one around it counts.
func (g *Grouper) rootCause() span {
	spans := g.trace.spans
	for i, s := range spans {
		if s.first == s.end {
			continue
		}
		for _, around := range spans[i:] {
			if s.typ == "" {
				s.typ, s.message = around.typ, around.message
			}
		}
		return s
	}
	return spans[len(spans)-1]
}

func (g *Grouper) outermost() span { return g.trace.spans[len(g.trace.spans)-1] }

// faulty reports whether the innermost own frame alone locates the error.
func (g *Grouper) faulty() bool {
	first := g.trace.site[0]
	name := g.trace.identity(first)
	return g.trace.syntax.isFault(g.root.typ) && name[len(name)-1] != ':'
}

// findCircle finds the frames of endless recursion, in an order
// that does not depend on where it ended.
func (g *Grouper) findCircle() {
	g.circle = g.circle[:0]
	if !isOverflow(g.root.typ, g.root.message) {
		return
	}
	for k, i := range g.trace.site {
		if g.trace.looped[k] {
			g.circle = append(g.circle, g.trace.identity(i))
		}
	}
	slices.SortFunc(g.circle, bytes.Compare)
}

// appendTypeName appends an error's type without what changes
// from one occurrence to the next.
func (g *Grouper) appendTypeName(dst []byte, typ string) []byte {
	typ = withoutGenerated(clip(firstLine(typ), maxLine))
	if hasID(typ) {
		g.typ = appendWithoutIDs(g.typ[:0], typ)
		typ = string(g.typ)
	}
	return appendUnnumbered(dst, typ)
}

// appendUnnumbered appends a type without counters and
// addresses: "Foo$1" and "#<Class:0x00007f>".
func appendUnnumbered(dst []byte, typ string) []byte {
	for typ != "" {
		before, address, found := strings.Cut(typ, "0x")
		dst = appendUncounted(dst, before)
		if typ = ""; found {
			typ = strings.TrimLeft(address, "0123456789abcdefABCDEF")
		}
	}
	return dst
}
