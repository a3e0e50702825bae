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

// Fingerprint is the hashes of an error, from strict to loose. Some join: an
// error joins the group of the strictest known one, or creates a group. The
// rest find similar groups. Every hash follows from each stricter one, so the
// deciding one alone identifies the group. All but the strictest are made
// when asked for: of most errors it is known.
type Fingerprint struct {
	Strictest ScopedHash

	grouper *Grouper // still holds the parsed error
}

// Deciding is the loosest hash that joins. Errors
// are the same exactly when theirs are equal.
func (f Fingerprint) Deciding() ScopedHash {
	if f.ruled() {
		return f.Strictest
	}
	return f.natural()
}

// natural is the one that decides unless a rule does.
func (f Fingerprint) natural() ScopedHash { return f.At(Levels[deciding]) }

// ruled reports whether a rule of the project decides.
func (f Fingerprint) ruled() bool { return f.Strictest.Scope == ScopeRule }

// Joining are the joining hashes, strictest first.
func (f Fingerprint) Joining() []ScopedHash {
	if f.traced() && !f.ruled() {
		return []ScopedHash{f.Strictest, f.Deciding()}
	}
	return []ScopedHash{f.Strictest}
}

// Similar is the loosest hash.
func (f Fingerprint) Similar() Hash { return f.grouper.similar().Hash }

// traced reports whether the error has a usable stack trace.
func (f Fingerprint) traced() bool { return len(f.grouper.trace.Site()) > 0 }

// Former are the ordinals, see Learned.Before, for the error's hashes
// before its last value was learned, and before any was; none if no
// value changes its hash.
func (f Fingerprint) Former() []int {
	known := f.grouper.message.Known()
	if len(known) == 0 || f.grouper.fault && f.traced() || f.ruled() {
		return nil
	}
	if last := slices.Max(known); len(known) > 1 {
		return []int{last, 1}
	}
	return []int{1}
}

// All returns the hashes at all levels, the strictest first; without
// a usable stack trace, or by a rule, the strictest and the loosest.
func (f Fingerprint) All() (all []ScopedHash) {
	if f.ruled() || !f.traced() {
		return []ScopedHash{f.Strictest, f.grouper.similar()}
	}
	for _, level := range Levels {
		all = append(all, f.grouper.at(level))
	}
	return all
}

// At is the hash at any level, even one that is not in
// Levels; without a usable stack trace, the strictest.
func (f Fingerprint) At(level Level) ScopedHash {
	if !f.traced() {
		return f.Strictest
	}
	return f.grouper.at(level)
}

// Rules is a set of rules by which more or less of an error counts.
type Rules uint8

// The rules.
const (
	FaultRule     Rules = 1 << iota // of a fault, one frame counts and no words
	RecursionRule                   // of endless recursion, its cycle counts
	WordingRule                     // the words of JavaScript's engines for one mistake are equal
	UnwrapRule                      // an error that is only named in the message of another is the root cause
)

// Grouper fingerprints one error after another and reuses its
// memory. It is for one goroutine. Its zero value is ready.
type Grouper struct {
	Without Rules // do not apply; for benchmarks

	trace   trace.Trace
	root    trace.Span
	kind    []byte        // the root's type, as it is compared
	message trace.Message // of the root
	other   trace.Message // of other exceptions
	fault   bool          // the innermost own frame alone locates it
	cycle   [][]byte      // functions of an endless recursion
	key     []byte
	ruling  ruling
}

// Fingerprint returns e's hashes, which can be asked for until the next call.
func (g *Grouper) Fingerprint(e Error) Fingerprint {
	g.apply(e.Learned.Rules, e.Context)
	g.trace.Read(e.Type, e.Message, e.StackTrace, e.Learned.Libraries, e.Mapping)
	return g.fingerprint(e.Learned)
}

func (g *Grouper) fingerprint(learned Learned) Fingerprint {
	f := g.compare(learned)
	if g.ruling.decide(&g.trace); g.ruling.decides != nil {
		f.Strictest = g.ruling.hash(f)
	}
	return f
}

func (g *Grouper) compare(learned Learned) Fingerprint {
	if len(g.trace.Site()) == 0 {
		return g.byMessage(learned)
	}
	if g.root = g.trace.Root(); g.Without&UnwrapRule == 0 {
		g.root = g.root.Unwrapped()
	}
	if g.kind = g.trace.Language().AppendType(g.kind[:0], g.root.Type); len(g.kind) == 0 {
		g.kind = append(g.kind, trace.GoFault(g.root.Message)...)
	}
	mistake, missing := trace.EngineMistake(g.root.Type, g.root.Message)
	g.fault = g.isFault(mistake)
	g.findCycle()
	g.readMistake(&g.message, g.root, trace.MaxWords, mistake, missing)
	g.learn(learned)
	return Fingerprint{g.at(Levels[0]), g}
}

// readMessage reads the message of an exception.
func (g *Grouper) readMessage(m *trace.Message, s trace.Span, most int) {
	mistake, missing := trace.EngineMistake(s.Type, s.Message)
	g.readMistake(m, s, most, mistake, missing)
}

func (g *Grouper) readMistake(m *trace.Message, s trace.Span, most int, mistake, missing string) {
	if mistake != "" && g.Without&WordingRule == 0 {
		m.Set(mistake, missing)
		return
	}
	m.Read(s.Message, most)
}

// learn makes values of words that vary in the project's messages.
func (g *Grouper) learn(learned Learned) {
	if len(learned.Values) > 0 {
		g.message.Learn(g.similar().Hash.family(), learned.Values, learned.limit())
	}
}

// similar is the loosest hash, which no word of the message changes.
func (g *Grouper) similar() ScopedHash {
	if len(g.trace.Site()) == 0 {
		g.key = append(beginKey(g.key, ScopeType), g.kind...)
		return hashOf(ScopeType, g.key)
	}
	return g.at(Levels[loosest])
}

func (g *Grouper) byMessage(learned Learned) Fingerprint {
	s := g.trace.Outermost()
	g.readMessage(&g.message, s, trace.MaxAlone)
	g.kind = g.trace.Language().AppendType(g.kind[:0], s.Type)
	g.learn(learned)
	g.key = g.message.AppendAll(append(append(beginKey(g.key, ScopeMessage), g.kind...), keyEnd))
	return Fingerprint{hashOf(ScopeMessage, g.key), g}
}

// at hashes the error at a level.
func (g *Grouper) at(level Level) ScopedHash {
	key := beginKey(g.key, level.Scope)
	if level.Scope == ScopeTrace {
		key = g.appendTrace(key)
	}
	g.key = g.appendSite(key, level)
	return hashOf(level.Scope, g.key)
}

// keyEnd ends each part of a key. Only messages hold it.
const keyEnd = '\n'

// beginKey begins what is hashed in a scope, in memory that held another key.
func beginKey(memory []byte, scope HashScope) []byte {
	return append(append(append(memory[:0], '0'+Version, ' '), scope...), keyEnd)
}

func hashOf(scope HashScope, key []byte) ScopedHash {
	sum := sha256.Sum256(key)
	return ScopedHash{Version, scope, Hash(sum[:16])}
}

// appendTrace appends all exceptions with the sender's own frames, or with
// all where none is own. Frames of libraries change with their releases.
func (g *Grouper) appendTrace(key []byte) []byte {
	t, own := &g.trace, g.own()
	for _, s := range t.Spans() {
		key = append(g.trace.Language().AppendType(key, s.Type), keyEnd)
		if s.Message != g.root.Message { // that of the root follows
			g.readMessage(&g.other, s, trace.MaxWords)
			key = append(g.other.AppendAll(key), keyEnd)
		}
		var last []byte
		for i := s.First; i < s.End; i++ {
			if own && !t.Frames()[i].InApp || s.IsMiddle(i) {
				continue
			}
			if name := t.Identity(i); len(name) > 0 && !bytes.Equal(name, last) {
				key = append(append(key, name...), keyEnd)
				last = name
			}
		}
	}
	return key
}

func (g *Grouper) appendSite(key []byte, level Level) []byte {
	if len(g.cycle) > 0 { // engines name the type differently
		return appendLines(append(key, "recursion\n"...), g.cycle)
	}
	key = append(append(key, g.kind...), keyEnd)
	if !g.own() {
		key = append(key, '-')
	}
	if level.Whole {
		key = append(g.message.AppendAll(key), keyEnd)
	}
	if !g.fault {
		key = g.message.AppendWords(key, level.Words)
	}
	for _, i := range g.deciders(level) {
		key = append(append(key, keyEnd), g.trace.Identity(i)...)
	}
	return key
}

// deciders are the frames that count at a level.
func (g *Grouper) deciders(level Level) []int {
	most := level.Frames
	if g.fault {
		most = 1
	}
	site := g.trace.Site()
	return site[:min(most, len(site))]
}

// own reports whether the deciding frames are the sender's own.
func (g *Grouper) own() bool { return g.trace.Frames()[g.trace.Site()[0]].InApp }

func appendLines(key []byte, lines [][]byte) []byte {
	for _, line := range lines {
		key = append(append(key, line...), keyEnd)
	}
	return key
}

// isFault reports whether the innermost own frame alone locates the
// error: it is a mistake of that function, and the function has a name.
func (g *Grouper) isFault(mistake string) bool {
	if g.Without&FaultRule != 0 || !g.own() || trace.IsNetworkMistake(mistake) {
		return false
	}
	name := g.trace.Identity(g.trace.Site()[0])
	return name[len(name)-1] != ':' && g.trace.Language().IsFault(g.root.Type, g.root.Message)
}

// findCycle finds the frames of endless recursion,
// sorted, as it may end at any of them.
func (g *Grouper) findCycle() {
	g.cycle = g.cycle[:0]
	if g.Without&RecursionRule != 0 || !trace.IsOverflow(g.root.Type, g.root.Message) {
		return
	}
	for k, i := range g.trace.Site() {
		if g.trace.Repeated(k) {
			g.cycle = append(g.cycle, g.trace.Identity(i))
		}
	}
	slices.SortFunc(g.cycle, bytes.Compare)
}
