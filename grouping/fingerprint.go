package grouping

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/weirlog/weir/grouping/trace"
)

// Version is the version of the algorithm, stored with each hash. A change
// that alters any error's hash raises it; formerHashes of internal/postgres
// is where the hashes of the one before would find existing groups.
const Version = 1

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

// Fingerprint holds the hashes of an error, from strict to loose. The first
// Joins of them decide: an error joins the group of the strictest known
// one, or creates a group. The rest find similar groups. Every hash follows
// from each stricter one, so Hashes[Joins-1] alone identifies the group.
type Fingerprint struct {
	Hashes []ScopedHash
	Joins  int

	grouper *Grouper // still holds the parsed error
}

// Deciding is the loosest hash that joins. Errors
// are the same exactly when theirs are equal.
func (f Fingerprint) Deciding() ScopedHash { return f.Hashes[f.Joins-1] }

// Joining returns a copy of the joining hashes, strictest first.
func (f Fingerprint) Joining() []ScopedHash { return slices.Clone(f.Hashes[:f.Joins]) }

// Similar is the loosest hash.
func (f Fingerprint) Similar() Hash { return f.Hashes[len(f.Hashes)-1].Hash }

// All returns the hashes at all levels, the strictest
// first; without a usable stack trace, Hashes.
func (f Fingerprint) All() (all []ScopedHash) {
	if len(f.grouper.trace.Site()) == 0 {
		return slices.Clone(f.Hashes)
	}
	for _, level := range Levels {
		all = append(all, f.grouper.at(level))
	}
	return all
}

// At is the hash at any level, even one that is not in
// Levels; without a usable stack trace, the deciding one.
func (f Fingerprint) At(level Level) ScopedHash {
	if len(f.grouper.trace.Site()) == 0 {
		return f.Deciding()
	}
	return f.grouper.at(level)
}

// Grouper fingerprints one error after another and reuses its
// memory. It is for one goroutine. Its zero value is ready.
type Grouper struct {
	trace      trace.Trace
	root       trace.Span
	kind       []byte      // the root's type, as it is compared
	siteDepth  int         // frames that count in ScopeSite and looser, see depth
	stackDepth int         // frames that count in ScopeStack
	fault      bool        // the innermost own frame alone locates it
	cycle      [][]byte    // functions of an endless recursion
	words      trace.Words // of the root's message
	text       []byte      // template of that message
	key        []byte
	hashes     [stored]ScopedHash
}

// Fingerprint returns e's hashes, valid until the next call.
func (g *Grouper) Fingerprint(e Error) Fingerprint {
	g.trace.Read(e.Type, e.Message, e.StackTrace, e.Libraries)
	if len(g.trace.Site()) == 0 {
		return g.byMessage()
	}
	g.root = g.trace.Root().Unwrapped()
	g.kind = trace.AppendType(g.kind[:0], g.root.Type)
	g.readMessage()
	if g.fault = g.isFault(); !g.fault {
		g.trace.SkipHelpers()
	}
	g.siteDepth = g.depth(g.share(), 1)
	g.stackDepth = max(g.siteDepth, g.depth(threeFifths, stackFaultDepth))
	g.findCycle()
	found := g.hashes[:0]
	for _, level := range Levels {
		if level.Stored {
			found = append(found, g.at(level))
		}
	}
	return Fingerprint{Hashes: found, Joins: joining, grouper: g}
}

// readMessage reads the words and the template of the root's message.
func (g *Grouper) readMessage() {
	message := g.root.Message
	if g.trace.Language().EngineError(g.root.Type) {
		if mistake, missing := trace.EngineMistake(g.root.Type, message); mistake != "" {
			g.words.Set(mistake, missing)
			g.text = g.words.Append(g.text[:0], trace.MaxWords)
			return
		}
	}
	g.words.Read(message)
	g.text = trace.AppendTemplate(g.text[:0], message, trace.MaxWords)
}

func (g *Grouper) byMessage() Fingerprint {
	g.hashes[0] = g.hash(ScopeMessage, g.appendMessage(g.begin(ScopeMessage)))
	g.hashes[1] = g.hash(ScopeType, trace.AppendType(g.begin(ScopeType), g.trace.Outermost().Type))
	return Fingerprint{Hashes: g.hashes[:2], Joins: 1, grouper: g}
}

// at hashes the error at a level.
func (g *Grouper) at(level Level) ScopedHash {
	key := g.begin(level.Scope)
	if level.Scope == ScopeTrace {
		key = g.appendTrace(key)
	}
	return g.hash(level.Scope, g.appendSite(key, level))
}

// keyEnd ends each part of a key. Only messages hold it.
const keyEnd = '\n'

func (g *Grouper) begin(scope HashScope) []byte {
	return append(append(append(g.key[:0], '0'+Version, ' '), scope...), keyEnd)
}

func (g *Grouper) hash(scope HashScope, key []byte) ScopedHash {
	g.key = key
	sum := sha256.Sum256(key)
	return ScopedHash{Version, scope, Hash(sum[:16])}
}

// appendTrace appends all exceptions with the sender's own frames, or with
// all where none is own. Frames of libraries change with their releases.
func (g *Grouper) appendTrace(key []byte) []byte {
	t, own := &g.trace, g.own()
	for _, s := range t.Spans() {
		key = append(trace.AppendType(key, s.Type), keyEnd)
		key = append(g.appendTemplateOf(key, s.Message), keyEnd)
		var last []byte
		for i := s.First; i < s.End; i++ {
			name := t.Identity(i)
			if own && !t.Frames()[i].InApp || len(name) == 0 || bytes.Equal(name, last) || t.IsMiddle(s, i) {
				continue
			}
			key = append(append(key, name...), keyEnd)
			last = name
		}
	}
	return key
}

// appendTemplateOf appends the template of a message.
// Most often it is the root's, which is known.
func (g *Grouper) appendTemplateOf(key []byte, message string) []byte {
	if message == g.root.Message {
		return append(key, g.text...)
	}
	return trace.AppendTemplate(key, message, trace.MaxWords)
}

func (g *Grouper) appendSite(key []byte, level Level) []byte {
	if len(g.cycle) > 0 { // engines name the type differently
		return appendLines(append(key, "recursion\n"...), g.cycle)
	}
	key = append(g.appendKind(key, level), keyEnd)
	if !g.own() {
		key = append(key, '-')
	}
	if !g.fault || level.Template {
		key = g.appendWords(key, level)
	}
	key = append(append(key, keyEnd), g.callee(level)...)
	for n, i := range g.deciders(level) {
		if n == g.siteDepth { // where looser levels end follows from this one
			key = append(key, keyEnd)
		}
		name := g.trace.Identity(i)
		if level.Scope == ScopeClass && n > 0 {
			name = trace.WithoutFunction(name)
		}
		key = append(append(key, keyEnd), name...)
	}
	return key
}

// appendKind appends the type. At levels that only find
// similar groups all faults are one: a null dereference
// and an index out of range may miss the same thing.
func (g *Grouper) appendKind(key []byte, level Level) []byte {
	if level.similar() && g.fault {
		return append(key, "fault"...)
	}
	return append(key, g.kind...)
}

func (g *Grouper) appendWords(key []byte, level Level) []byte {
	if level.Template {
		key = append(append(key, g.text...), keyEnd)
	}
	return g.words.Append(key, level.Words)
}

// callee is the library function in which own code failed, where all
// runtimes print it alike. It distinguishes statements of one function.
func (g *Grouper) callee(level Level) []byte {
	first := g.trace.Site()[0]
	if level.Scope == ScopePoint || !g.trace.Language().PrintsCallees() || first == 0 || !g.own() {
		return nil
	}
	if g.trace.Frames()[first-1].InApp {
		return nil // a helper, through which one looks
	}
	for _, s := range g.trace.Spans() {
		if s.First == first {
			return nil // nothing was called
		}
	}
	return g.trace.Identity(first - 1)
}

// deciders are the frames that count at a level.
func (g *Grouper) deciders(level Level) []int {
	site := g.trace.Site()
	most := level.Frames
	switch level.Scope {
	case ScopeTrace:
	case ScopeStack:
		most = min(most, g.stackDepth)
	default:
		most = min(most, g.siteDepth)
	}
	return site[:min(most, len(site))]
}

// share is the part of the own frames that counts, as the outer ones
// depend on the caller. Without words of a message more frames count.
func (g *Grouper) share() share {
	if g.words.Len() == 0 || !g.own() {
		return twoThirds
	}
	return half
}

type share struct{ of, parts int }

var (
	half        = share{1, 2}
	threeFifths = share{3, 5}
	twoThirds   = share{2, 3}
)

// depth is how many frames locate the error: for a fault as
// given, else a share of the way to the entry point. One frame
// of foreign code, or with a generic name, does not suffice.
func (g *Grouper) depth(s share, fault int) int {
	site := g.trace.Site()
	n := max((s.of*len(site)+s.parts-1)/s.parts, minDepth)
	switch {
	case !g.own():
		n = min(n, foreignDepth)
		if g.fault {
			n = foreignFaultDepth
		}
	case g.fault:
		n = fault
	}
	for n = min(n, len(site)); n < len(site) && n < genericDepth && trace.IsGeneric(g.trace.Identity(site[n-1])); n++ {
	}
	return n
}

// Bounds of depth.
const (
	minDepth          = 2 // the caller too, where there is one
	foreignDepth      = 4 // where none is the sender's own
	foreignFaultDepth = 2 // there, of a fault
	stackFaultDepth   = 2 // of a fault, where errors are compared more strictly
	genericDepth      = 3 // where the innermost names are generic
)

// own reports whether the deciding frames are the sender's own.
func (g *Grouper) own() bool { return g.trace.Frames()[g.trace.Site()[0]].InApp }

func (g *Grouper) appendMessage(key []byte) []byte {
	s := g.trace.Outermost()
	return appendWholeMessage(append(trace.AppendType(key, s.Type), keyEnd), s)
}

// maxTemplate is how many words of a message count without a trace.
const maxTemplate = 40

// appendWholeMessage appends what identifies a message without a trace.
func appendWholeMessage(dst []byte, s trace.Span) []byte {
	if mistake, missing := trace.EngineMistake(s.Type, s.Message); mistake != "" {
		return append(append(append(dst, mistake...), ' '), missing...)
	}
	return trace.AppendTemplate(dst, s.Message, maxTemplate)
}

func appendLines(key []byte, lines [][]byte) []byte {
	for _, line := range lines {
		key = append(append(key, line...), keyEnd)
	}
	return key
}

// isFault reports whether the innermost own frame alone locates the error.
func (g *Grouper) isFault() bool {
	first := g.trace.Site()[0]
	name := g.trace.Identity(first)
	return g.trace.Language().IsFault(g.root.Type) && name[len(name)-1] != ':'
}

// findCycle finds the frames of endless recursion,
// sorted, as it may end at any of them.
func (g *Grouper) findCycle() {
	g.cycle = g.cycle[:0]
	if !trace.IsOverflow(g.root.Type, g.root.Message) {
		return
	}
	for k, i := range g.trace.Site() {
		if g.trace.Repeated(k) {
			g.cycle = append(g.cycle, g.trace.Identity(i))
		}
	}
	slices.SortFunc(g.cycle, bytes.Compare)
}
