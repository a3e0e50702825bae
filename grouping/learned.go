package grouping

import (
	"bytes"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/weirlog/weir/grouping/trace"
)

// Learned is what a project's earlier errors have shown, and people have said.
type Learned struct {
	Libraries Libraries
	Values    Values
	Splits    Splits
	Rules     *Ruleset // that hold for the error; nil: none
	Newest    int64    // version of the project's rules; 0: there are none
	Before    int      // values learned from this ordinal on are not applied; 0: all are
	Maps      bool     // the project has source maps
	Owners    []OwnerPaths
}

// OwnerPaths are the paths in metadata that rules about owners ask for, of errors accepted from a time on.
type OwnerPaths struct {
	Since time.Time `json:"since"`
	Paths []string  `json:"paths"`
}

// Asked are the paths in metadata that rules ask for of an error that was accepted at a time.
func (l Learned) Asked(accepted time.Time) (paths []string) {
	if l.Rules != nil {
		paths = l.Rules.Paths
	}
	for _, of := range slices.Backward(l.Owners) { // the earliest first
		if !of.Since.After(accepted) {
			return slices.Compact(slices.Sorted(slices.Values(slices.Concat(paths, of.Paths))))
		}
	}
	return paths
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
	maxValues  = 1000 // of a project; further ones are not learned
	maxLearned = 10   // of a family at once
	variety    = 10   // different words at one place, with enough else equal, are values
	MaxFamily  = 320  // groups that are compared
)

// Varied reports whether a family of groups, of which so many are new,
// may have values to learn: when it has doubled, up to MaxFamily.
func Varied(groups, created int) bool {
	for n := variety; n <= min(groups, MaxFamily); n *= 2 {
		if groups-created < n {
			return true
		}
	}
	return false
}

// Learn adds the values in the messages of groups
// that share their loosest hash, see Grouper.Message.
func (v Values) Learn(family Hash, messages [][][]byte) {
	lengths := map[int][][][]byte{} // bounded by the messages
	for _, m := range messages {
		lengths[len(m)] = append(lengths[len(m)], m)
	}
	most := min(maxValues, len(v)+maxLearned)
	for _, words := range slices.Sorted(maps.Keys(lengths)) {
		v.learn(family.family(), most, nil, 0, lengths[words])
	}
}

// learn examines the word at a place of messages of one length that are
// equal before it: those with the same next word vary there together.
func (v Values) learn(family uint64, most int, before []byte, place int, messages [][][]byte) {
	if len(messages) < variety || place == len(messages[0]) {
		return
	}
	byWord := map[string][][][]byte{} // bounded by the messages
	for next, alike := range byNext(messages, place) {
		context := trace.Context(family, before, []byte(next), len(alike[0]))
		if v[context] == 0 && len(v) < most && vary(alike, place) {
			v[context] = len(v) + 1
		}
		for _, m := range alike {
			word := string(m[place])
			if v[context] > 0 && trace.MayVary(m[place]) {
				word = trace.Value
			}
			byWord[word] = append(byWord[word], m)
		}
	}
	for _, word := range slices.Sorted(maps.Keys(byWord)) {
		v.learn(family, most, append(slices.Clip(before), word...), place+1, byWord[word])
	}
}

// byNext divides messages by the word after a place, in the order of these.
func byNext(messages [][][]byte, place int) iter.Seq2[string, [][][]byte] {
	nexts := map[string][][][]byte{} // bounded by the messages
	for _, m := range messages {
		next := ""
		if place+1 < len(m) {
			next = string(m[place+1])
		}
		nexts[next] = append(nexts[next], m)
	}
	return func(yield func(string, [][][]byte) bool) {
		for _, next := range slices.Sorted(maps.Keys(nexts)) {
			if !yield(next, nexts[next]) {
				return
			}
		}
	}
}

// vary reports whether messages differ at a place by what may be values,
// and are much alike elsewhere: unrelated messages teach nothing.
func vary(messages [][][]byte, place int) bool {
	different := map[string]bool{} // bounded by the messages
	for _, m := range messages {
		if trace.MayVary(m[place]) {
			different[string(m[place])] = true
		}
	}
	equal, first := 0, messages[0]
	for i := range first {
		if i != place && string(first[i]) != trace.Value && !slices.ContainsFunc(messages, func(m [][]byte) bool { return !bytes.Equal(m[i], first[i]) }) {
			equal++
		}
	}
	return len(different) >= variety && equal > 0 && 2*equal >= len(first)-1
}

// family names the groups that share this as their loosest hash.
func (h Hash) family() uint64 { return binary.BigEndian.Uint64(h[:]) }

// Message returns the words of an error's message that may vary, of an
// error that was read before.
func (g *Grouper) Message(language trace.Language, exceptions []trace.Exception) [][]byte {
	if len(exceptions) == 0 {
		return nil
	}
	g.apply(nil, nil)
	g.trace.Load(language, exceptions, nil)
	s, most := g.trace.Outermost(), trace.MaxAlone
	if len(g.trace.Site()) > 0 {
		s, most = g.trace.Root().Unwrapped(), trace.MaxWords
	}
	g.readMessage(&g.message, s, most)
	return g.message.Words()
}
