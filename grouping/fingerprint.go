package grouping

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Version is the newest algorithm's. A hash carries the version that first made it: whoever changes the hashes of some
// errors raises Version for these alone, and keeps the old algorithm so that their groups go on being found (see Former).
//
//	1 all errors
//	2 those whose type holds an id: it is taken out
const Version = 2

const firstVersion = 1

// HashScope reports how much of an error a hash covers. Scopes are stored and shown, so they are never renamed.
type HashScope string

// The scopes, the strictest first.
const (
	ScopeTrace   HashScope = "trace"   // all exceptions of the chain with all their frames, and the words of the message
	ScopeSite    HashScope = "site"    // the root cause: its type, the words of its message, the innermost own frames
	ScopePlace   HashScope = "place"   // its type and the three innermost own frames; similar errors, not the same
	ScopeMessage HashScope = "message" // without a usable stack trace: type and template of the message
	ScopeType    HashScope = "type"    // the type alone; similar errors, not the same
	ScopeBudget  HashScope = "budget"  // nothing of the error: it came when its project had created as many groups as it may
)

// Hash is a truncated SHA-256.
type Hash [16]byte

// String is the hash in hexadecimal.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// ScopedHash is the hash of an error in one scope.
type ScopedHash struct {
	Version int
	Scope   HashScope
	Hash    Hash
}

// Fingerprint is what an error is compared by. Hashes go from strict to loose. The first Joins of them decide: an
// error belongs to the group of the strictest of these that is known, and creates a group when none is. The rest tell
// what is similar. Hashes[Joins-1] follows from every stricter one, so that it alone names the group.
type Fingerprint struct {
	Version int
	Hashes  []ScopedHash
	Joins   int
	Former  []ScopedHash // what joined in the version before, where that was something else: it finds groups and creates none

	of *Grouper // which still holds the error that was parsed
}

// Deciding is the loosest hash that joins: two errors are the same exactly when these are equal.
func (f Fingerprint) Deciding() ScopedHash { return f.Hashes[f.Joins-1] }

// Frames that the hashes cover.
const (
	siteFrames      = 6  // where the message has words
	mutedSiteFrames = 8  // where it has none
	placeFrames     = 3  // of the loose scope
	traceHead       = 50 // of each exception, the innermost
	traceTail       = 10 // of each exception, the outermost
)

// Grouper fingerprints errors one after another and reuses its memory. It must not be used by two goroutines at once.
// Its zero value is ready.
type Grouper struct {
	sent    Error
	trace   trace
	version int
	key     []byte
	typ     []byte // a type without its ids
	hashes  [3]ScopedHash
	former  [2]ScopedHash
}

// Fingerprint parses e and returns its hashes, with which it can be described. They are valid until the next call.
func (g *Grouper) Fingerprint(e Error) Fingerprint {
	g.sent = e
	g.trace.parse(&g.sent)
	if g.version = firstVersion; !g.trace.identified() {
		return g.fingerprint()
	}
	former := g.fingerprint()
	former.Hashes = append(g.former[:0], former.Hashes[:former.Joins]...)
	g.version = Version
	f := g.fingerprint()
	f.Former = former.Hashes
	return f
}

func (g *Grouper) fingerprint() Fingerprint {
	if len(g.trace.site) == 0 {
		return g.byMessage()
	}
	g.hashes = [3]ScopedHash{
		{g.version, ScopeTrace, g.hash(ScopeTrace, g.appendTrace)},
		{g.version, ScopeSite, g.hash(ScopeSite, g.appendSite)},
		{g.version, ScopePlace, g.hash(ScopePlace, g.appendPlace)},
	}
	return Fingerprint{Version: g.version, Hashes: g.hashes[:], Joins: 2, of: g}
}

func (g *Grouper) byMessage() Fingerprint {
	g.hashes[0] = ScopedHash{g.version, ScopeMessage, g.hash(ScopeMessage, g.appendMessage)}
	g.hashes[1] = ScopedHash{g.version, ScopeType, g.hash(ScopeType, g.appendType)}
	return Fingerprint{Version: g.version, Hashes: g.hashes[:2], Joins: 1, of: g}
}

// Parts of a key are ended by this byte, which no text that is compared holds except as part of a message.
const keyEnd = '\n'

func (g *Grouper) hash(scope HashScope, appendKey func([]byte) []byte) Hash {
	g.key = append(append(g.key[:0], '0'+byte(g.version), ' '), scope...)
	g.key = appendKey(append(g.key, keyEnd))
	sum := sha256.Sum256(g.key)
	return Hash(sum[:16])
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

func (g *Grouper) appendPlace(key []byte) []byte {
	key = append(g.appendTypeName(key, g.root().typ), keyEnd)
	return g.appendFrames(key, placeFrames)
}

func (g *Grouper) appendMessage(key []byte) []byte {
	s := g.outermost()
	key = append(g.appendTypeName(key, s.typ), keyEnd)
	return appendTemplate(key, s.message)
}

func (g *Grouper) appendType(key []byte) []byte { return g.appendTypeName(key, g.outermost().typ) }

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

// root is the innermost exception that has frames; its type may be unknown, then that of the one around it counts.
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

// circle returns the names of the frames that recursion went through, in an order that does not depend on where it
// ended.
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

// appendTypeName appends an error's type without what changes from one occurrence to the next.
func (g *Grouper) appendTypeName(dst []byte, typ string) []byte {
	typ = clip(firstLine(typ), maxLine)
	if g.version > firstVersion && hasID(typ) {
		g.typ = appendWithoutIDs(g.typ[:0], typ)
		typ = string(g.typ)
	}
	return appendUnnumbered(dst, typ)
}

// appendUnnumbered appends a type without counters and addresses: "Foo$1" and "#<Class:0x00007f>".
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
