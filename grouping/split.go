package grouping

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"
)

// MaxSplits is how often groups of a project can be split.
const MaxSplits = 100

// SplitHashes are the hashes by which errors can be split off: nothing that was
// learned changes them. They are zero without a usable stack trace.
type SplitHashes struct{ Trace, Stack Hash }

// A Split is where errors that are alike go.
type Split struct {
	After time.Time // of those that were accepted after it
	From  string    // the group that they were counted in before
}

// Splits are those of a project, by a hash of SplitHashes; bounded by MaxSplits.
type Splits map[Hash]Split

// of finds the split that an error belongs to, the strictest first.
func (s Splits) of(a SplitHashes, accepted time.Time) (split Split, joins ScopedHash, found bool) {
	for _, hash := range [...]Hash{a.Trace, a.Stack} {
		if split, found = s[hash]; found && accepted.After(split.After) {
			return split, hash.split(), true
		}
	}
	return Split{}, ScopedHash{}, false
}

// From is how often a group was split.
func (s Splits) From(group string) (n int) {
	for _, split := range s {
		if split.From == group {
			n++
		}
	}
	return n
}

// split is the hash that errors with this one join. It is another, as the strictest one may lead to their former group.
func (h Hash) split() ScopedHash {
	sum := sha256.Sum256([]byte(string(ScopeSplit) + "\n" + h.String()))
	return ScopedHash{Version, ScopeSplit, Hash(sum[:16])}
}

// ParseHash reads what Hash.String wrote.
func ParseHash(text string) (h Hash, ok bool) {
	n, err := hex.Decode(h[:], []byte(text[:min(len(text), hex.EncodedLen(len(h)))]))
	return h, err == nil && n == len(h)
}

// splitHashes returns the hashes by which an error can be split off. Others can't be asked for any more.
func (f Fingerprint) splitHashes(e Error) SplitHashes {
	switch learned := e.Learned; {
	case !learned.Rules.Empty():
		e.Learned = Learned{}
		f = f.grouper.Fingerprint(e)
	case len(learned.Libraries)+len(learned.Values) > 0:
		f.grouper.trace.Relearn(nil)
		f = f.grouper.fingerprint(Learned{})
	}
	if !f.traced() {
		return SplitHashes{}
	}
	return SplitHashes{Trace: f.Strictest.Hash, Stack: f.At(Levels[stack]).Hash}
}

// Split decides that errors like a sample of a group of the family become
// another group. They are compared at the loosest level at which samples of their group differ.
func (f Family) Split(group, project string, of SplitHashes, samples []SplitHashes, ifVersion *int64, now time.Time) (GroupDecisions, error) {
	level, hash := ScopeStack, func(a SplitHashes) Hash { return a.Stack }
	differs := func(a SplitHashes) bool { return hash(a) != hash(of) }
	if !slices.ContainsFunc(samples, differs) {
		level, hash = ScopeTrace, func(a SplitHashes) Hash { return a.Trace }
	}
	if of == (SplitHashes{}) || !slices.ContainsFunc(samples, differs) {
		return nil, Invalid{"occurrence", "Nothing tells it from the other samples: their traces and whole messages are equal, or it has no usable trace.",
			"Choose another one."}
	}
	if slices.ContainsFunc(f.all(), func(k GroupVersion) bool { return k.full() && (k.ID == group || k.ID == f.Head.ID) }) {
		return nil, ErrFull
	}
	joins := hash(of).split()
	made := GroupID(project, joins.Version, joins.Hash)
	decided, err := f.decide(GroupDecisions{made: {}}, WasSplit, ifVersion, now)
	if err != nil {
		return nil, err
	}
	delete(decided, made)
	decided[group] = Decision{Kind: WasSplit, At: now, Level: level, Like: hash(of).String(), Into: made}
	return decided, nil
}
