package v2

import (
	"bytes"
	"crypto/sha256"
	"slices"
	"strings"

	"github.com/weirlog/weir/grouping"
)

// The versions:
//
//	1 all errors
//	2 those whose type holds an id: it is taken out
const (
	firstVersion = 1
	lastVersion  = 2
)

// Frames that the hashes cover.
const (
	siteFrames      = 6  // where the message has words
	mutedSiteFrames = 8  // where it has none
	traceHead       = 50 // of each exception, the innermost
	traceTail       = 10 // of each exception, the outermost
)

// Grouper fingerprints errors one after another and reuses its memory. It must
// not be used by two goroutines at once. Its zero value is ready.
type Grouper struct {
	trace   trace
	version int
	key     []byte
	typ     []byte // a type without its ids
}

// Hashes are those by which the former versions would have found the group
// of e, in the order in which they looked.
func (g *Grouper) Hashes(e grouping.Error) []grouping.ScopedHash {
	g.trace.parse(&e)
	g.version = firstVersion
	hashes := g.appendHashes(nil)
	if !g.trace.identified() {
		return hashes
	}
	g.version = lastVersion
	return g.appendHashes(hashes)
}

func (g *Grouper) appendHashes(hashes []grouping.ScopedHash) []grouping.ScopedHash {
	if len(g.trace.site) == 0 {
		return append(hashes, g.hash(grouping.ScopeMessage, g.appendMessage))
	}
	return append(hashes, g.hash(grouping.ScopeTrace, g.appendTrace), g.hash(grouping.ScopeSite, g.appendSite))
}

// Parts of a key are ended by this byte, which no text that is
// compared holds except as part of a message.
const keyEnd = '\n'

func (g *Grouper) hash(scope grouping.HashScope, appendKey func([]byte) []byte) grouping.ScopedHash {
	g.key = append(append(g.key[:0], '0'+byte(g.version), ' '), scope...)
	g.key = appendKey(append(g.key, keyEnd))
	sum := sha256.Sum256(g.key)
	return grouping.ScopedHash{Version: g.version, Scope: scope, Hash: grouping.Hash(sum[:16])}
}

func (g *Grouper) appendTrace(key []byte) []byte {
	t := &g.trace
	for _, s := range t.spans {
		key = append(g.appendTypeName(key, s.typ), keyEnd)
		key, _ = appendWords(key, s.message)
		key = append(key, keyEnd)
		var last []byte
		kept := 0
		for i := s.first; i < s.end; i++ {
			name := t.identity(i)
			if len(name) == 0 || bytes.Equal(name, last) || kept >= traceHead && i < s.end-traceTail {
				continue
			}
			key = append(append(key, name...), keyEnd)
			last, kept = name, kept+1
		}
	}
	return key
}

func (g *Grouper) appendSite(key []byte) []byte {
	root := g.root()
	key = append(g.appendTypeName(key, root.typ), keyEnd)
	if isOverflow(root.typ, root.message) {
		if circle := g.circle(); len(circle) > 0 {
			return appendLines(key, circle)
		}
	}
	if g.faulty(root) {
		return append(key, g.trace.identity(g.trace.site[0])...)
	}
	key, words := appendWords(key, root.message)
	frames := siteFrames
	if words == 0 {
		frames = mutedSiteFrames
	}
	return g.appendFrames(append(key, keyEnd), frames)
}

func (g *Grouper) appendMessage(key []byte) []byte {
	s := g.outermost()
	key = append(g.appendTypeName(key, s.typ), keyEnd)
	return appendTemplate(key, s.message)
}

func (g *Grouper) appendFrames(key []byte, n int) []byte {
	for _, i := range g.trace.site[:min(n, len(g.trace.site))] {
		key = append(append(key, g.trace.identity(i)...), keyEnd)
	}
	return key
}

func appendLines(key []byte, lines [][]byte) []byte {
	for _, line := range lines {
		key = append(append(key, line...), keyEnd)
	}
	return key
}

// root is the innermost exception that has frames; its type may be unknown,
// then that of the one around it counts.
func (g *Grouper) root() span {
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

// faulty reports whether the innermost own frame alone tells where the error is.
func (g *Grouper) faulty(root span) bool {
	first := g.trace.site[0]
	name := g.trace.identity(first)
	return isFault(root.typ) && g.trace.frames[first].InApp && name[len(name)-1] != ':'
}

// circle returns the names of the frames that recursion went through, in an
// order that does not depend on where it ended.
func (g *Grouper) circle() [][]byte {
	var names [][]byte
	for k, i := range g.trace.site {
		if g.trace.looped[k] {
			names = append(names, g.trace.identity(i))
		}
	}
	slices.SortFunc(names, bytes.Compare)
	return names
}

// appendTypeName appends an error's type without what changes
// from one occurrence to the next.
func (g *Grouper) appendTypeName(dst []byte, typ string) []byte {
	typ = clip(firstLine(typ), maxLine)
	if g.version > firstVersion && hasID(typ) {
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
