package v3

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/weirlog/weir/grouping"
)

const version = 3

// Frames and words that count at most.
const (
	siteFrames = 6
	siteWords  = 5
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
	circle [][]byte // the functions that endless recursion went through, where it is that
	words  wordlist // of the root cause's message
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
	g.root = g.rootCause()
	g.kind = g.appendTypeName(g.kind[:0], g.root.typ)
	g.near = g.reach()
	g.words.read(g.root.message)
	g.findCircle()
	trace := g.appendSite(g.appendTrace(g.begin(grouping.ScopeTrace)), everything, maxWords)
	strictest := g.hash(grouping.ScopeTrace, trace)
	return []grouping.ScopedHash{strictest, g.hash(grouping.ScopeSite, g.appendSite(g.begin(grouping.ScopeSite), siteFrames, siteWords))}
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
		key = append(appendTemplate(key, s.message, maxWords), keyEnd)
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

func (g *Grouper) appendSite(key []byte, frames, words int) []byte {
	if len(g.circle) > 0 { // engines name the type differently
		return appendLines(append(key, "recursion\n"...), g.circle)
	}
	key = append(append(key, g.kind...), keyEnd)
	if !g.own() {
		key = append(key, '-')
	}
	if !g.faulty() {
		key = g.words.append(key, words)
	}
	for _, i := range g.deciders(frames) {
		key = append(append(key, keyEnd), g.trace.identity(i)...)
	}
	return key
}

// deciders are the frames that count, of at most so many.
func (g *Grouper) deciders(most int) []int {
	site := g.trace.site
	if most != everything {
		most = min(most, g.near)
	}
	return site[:min(most, len(site))]
}

// reach is how many frames from the fault locate it: one for a fault, else at
// most two thirds of the way to the entry point, where frames depend on the
// caller. One frame of foreign code, or with a generic name, does not suffice.
func (g *Grouper) reach() int {
	site, n := g.trace.site, (2*len(g.trace.site)+2)/3
	switch {
	case !g.own():
		n = min(n, foreignReach)
		if g.faulty() {
			n = foreignFault
		}
	case g.faulty():
		n = 1
	}
	for n = min(n, len(site)); n < len(site) && n < genericReach && isGeneric(g.trace.identity(site[n-1])); n++ {
	}
	return n
}

// Frames that count at most.
const (
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
