package grouping

import (
	"hash/crc32"

	"github.com/weirlog/weir/grouping/trace"
)

// Outline is what the similarity of two errors is
// computed from. It is made of a stored sample.
type Outline struct {
	kind  int32    // type of the root cause
	site  []int32  // the frames that locate it
	calls []int32  // all frames of all exceptions, the root cause first
	names []string // of calls, as they are compared
	words []int32  // of its message
}

// numberOf maps a name to a number. Those of calls are stored.
func numberOf(name []byte) int32 {
	return int32(crc32.ChecksumIEEE(name)) //nolint:gosec // any number will do
}

// OutlineOf outlines an error of the language.
func OutlineOf(language trace.Language, exceptions []trace.Exception) (o Outline) {
	if len(exceptions) == 0 {
		return o
	}
	var g Grouper
	t := &g.trace
	t.Load(language, exceptions)
	root := t.Root().Unwrapped()
	o.kind = numberOf(trace.AppendType(nil, root.Type))
	for i := range t.Frames() {
		if name := t.Identity(i); len(name) > 0 {
			o.calls, o.names = append(o.calls, numberOf(name)), append(o.names, trace.Cut(string(name), maxCulprit))
		}
	}
	for _, i := range t.Site() {
		o.site = append(o.site, numberOf(t.Identity(i)))
	}
	g.words.Read(root.Message)
	for one := range g.words.All() {
		o.words = append(o.words, numberOf(one))
	}
	return o
}

// maxCalls is how many calls are stored with a group.
const maxCalls = 64

// Calls are at most 64 numbers of calls, the innermost of the
// root cause first. Errors that share none are not alike.
func (o Outline) Calls() []int32 { return o.calls[:min(len(o.calls), maxCalls)] }

// maxDifferences bounds the calls that Differences returns of each error.
const maxDifferences = 10

// Differences are the calls that only one
// of two errors has, the innermost first.
func (o Outline) Differences(p Outline) (only, other []string) { return o.without(p), p.without(o) }

func (o Outline) without(p Outline) (only []string) {
	left := make(map[int32]int, len(p.calls))
	for _, call := range p.calls {
		left[call]++
	}
	for i, call := range o.calls {
		if left[call]--; left[call] < 0 && len(only) < maxDifferences {
			only = append(only, o.names[i])
		}
	}
	return only
}
