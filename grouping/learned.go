package grouping

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/weirlog/weir/grouping/trace"
)

// Learned is what a project's earlier errors have shown.
type Learned struct {
	Libraries Libraries
	Values    Values
	Before    int // values learned from this ordinal on are not applied; 0: all are
}

func (l Learned) limit() int {
	if l.Before == 0 {
		return maxValues + 1
	}
	return l.Before
}

// Values are the places in a project's messages at which words vary, by
// trace.Context. Each has its ordinal, from 1 in the order of learning, as
// an error's hashes before a value was learned find its former group.
type Values map[uint64]int

// Bounds of what is learned of messages.
const (
	maxValues = 1000 // of a project; further ones are not learned
	variety   = 10   // different words at one place, all else before it equal, are values
)

// Varied reports whether a family of groups, of which so many are
// new, may have values to learn: when it has doubled.
func Varied(groups, created int) bool {
	for n := variety; n <= groups; n *= 2 {
		if groups-created < n {
			return true
		}
	}
	return false
}

// Learn adds the values in the messages of groups that share their loosest
// hash, see Grouper.Message. It reports whether there are new ones.
func (v Values) Learn(family Hash, messages [][][]byte) bool {
	before, lengths := len(v), map[int][][][]byte{}
	for _, m := range messages {
		lengths[len(m)] = append(lengths[len(m)], m)
	}
	for _, words := range slices.Sorted(maps.Keys(lengths)) {
		v.learn(family.family(), nil, 0, lengths[words])
	}
	return len(v) > before
}

// learn examines the word at a place of messages
// of one length that are equal before it.
func (v Values) learn(family uint64, before []byte, place int, messages [][][]byte) {
	if len(messages) < variety || place == len(messages[0]) {
		return
	}
	byWord := map[string][][][]byte{} // bounded by the messages
	for _, m := range messages {
		byWord[string(m[place])] = append(byWord[string(m[place])], m)
	}
	context := trace.Context(family, before, len(messages[0]))
	if v[context] == 0 && len(byWord) >= variety && len(v) < maxValues {
		v[context] = len(v) + 1
	}
	if v[context] > 0 {
		v.learn(family, append(slices.Clip(before), trace.Value...), place+1, messages)
		return
	}
	for _, word := range slices.Sorted(maps.Keys(byWord)) {
		v.learn(family, append(slices.Clip(before), word...), place+1, byWord[word])
	}
}

// family names the groups that share this as their loosest hash.
func (h Hash) family() uint64 { return binary.BigEndian.Uint64(h[:]) }

// Message returns the words of an error's message that may vary, of an
// error that was read before.
func (g *Grouper) Message(language trace.Language, exceptions []trace.Exception) [][]byte {
	if len(exceptions) == 0 {
		return nil
	}
	g.trace.Load(language, exceptions)
	s, most := g.trace.Outermost(), trace.MaxAlone
	if len(g.trace.Site()) > 0 {
		s, most = g.trace.Root().Unwrapped(), trace.MaxWords
	}
	g.readMessage(&g.message, s, most)
	return g.message.Words()
}
