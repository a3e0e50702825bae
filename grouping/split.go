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
	read, err := hex.DecodeString(text)
	if err != nil || len(read) != len(h) {
		return Hash{}, false
	}
	return Hash(read), true
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

// at is the hash at a level.
func (h SplitHashes) at(level HashScope) Hash {
	if level == ScopeTrace {
		return h.Trace
	}
	return h.Stack
}

// Split decides that errors with a hash of a group of the family become another
// group. It must be that of some samples of the group, and not of all.
func (f Family) Split(group, project string, like Hash, samples []SplitHashes, ifVersion *int64, now time.Time) (GroupDecisions, error) {
	level := ScopeTrace
	if slices.ContainsFunc(samples, func(s SplitHashes) bool { return s.Stack == like }) {
		level = ScopeStack
	}
	if like == (Hash{}) || !slices.ContainsFunc(samples, func(s SplitHashes) bool { return s.at(level) != like }) {
		return nil, Invalid{"hash", "All samples of its group have it, so it tells none of them from the others.", "Use the hash of an occurrence that has one."}
	}
	if slices.ContainsFunc(f.all(), func(k GroupVersion) bool { return k.full() && (k.ID == group || k.ID == f.Head.ID) }) {
		return nil, ErrFull
	}
	joins := like.split()
	made := GroupID(project, joins.Version, joins.Hash)
	decided, err := f.decide(GroupDecisions{made: {}}, WasSplit, ifVersion, now)
	if err != nil {
		return nil, err
	}
	delete(decided, made)
	decided[group] = Decision{Kind: WasSplit, At: now, Level: level, Like: like.String(), Into: made}
	return decided, nil
}
