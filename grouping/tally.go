package grouping

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// Bounds of what is kept of a group.
const (
	MaxEnvironments = 50  // different ones of a group; further ones are counted and not named
	MaxEnvironment  = 256 // bytes of a name; what follows does not tell two apart
	FirstSamples    = 5   // occurrences that are kept for ever: the first
	NewestSamples   = 20  // and the newest
	newestAtOnce    = 5   // of one tally: the newest of a storm are as good as one another
)

// Tally adds up occurrences before they are stored: a storm of one error costs as much as a single one.
type Tally struct {
	grouper Grouper
	counts  map[countKey]*Count
}

type countKey struct {
	organization, project string
	strictest             Hash
}

// Count is what a tally holds of one kind of error: those with the same strictest print.
type Count struct {
	Organization string
	Project      string
	Version      int
	Prints       []Print // those that join, the strictest first; the last one decides
	Similar      Hash    // of the strictest print that does not join
	N            int64
	First, Last  time.Time
	Severities   Severity
	Environments []string
	Samples      []Occurrence // the first ones and the newest, in the order of arrival
}

// NewTally returns an empty tally.
func NewTally() *Tally { return &Tally{counts: map[countKey]*Count{}} }

// Add counts one occurrence.
func (t *Tally) Add(o Occurrence) {
	o.Environment = clip(o.Environment, MaxEnvironment)
	f := t.grouper.Fingerprint(o.Error)
	key := countKey{o.Organization, o.Project, f.Prints[0].Hash}
	c, ok := t.counts[key]
	if !ok {
		c = &Count{
			Organization: o.Organization, Project: o.Project, Version: f.Version,
			Prints: slices.Clone(f.Prints[:f.Joins]), Similar: f.Prints[f.Joins].Hash, First: o.At, Last: o.At,
		}
		t.counts[key] = c
	}
	c.add(o)
}

func (c *Count) add(o Occurrence) {
	c.N++
	c.Severities |= o.Severity
	c.Environments = AddEnvironments(c.Environments, o.Environment)
	if o.At.Before(c.First) {
		c.First = o.At
	}
	if o.At.After(c.Last) {
		c.Last = o.At
	}
	if len(c.Samples) == FirstSamples+newestAtOnce {
		c.Samples = slices.Delete(c.Samples, FirstSamples, FirstSamples+1)
	}
	c.Samples = append(c.Samples, o)
}

// Deciding is the hash that names the group.
func (c *Count) Deciding() Hash { return c.Prints[len(c.Prints)-1].Hash }

// Counts returns what was added up, in an order that is the same everywhere: whoever locks rows in it meets no one
// who locks them the other way round.
func (t *Tally) Counts() []*Count {
	counts := make([]*Count, 0, len(t.counts))
	for _, c := range t.counts {
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b *Count) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Project, b.Project),
			compareHashes(a.Deciding(), b.Deciding()), compareHashes(a.Prints[0].Hash, b.Prints[0].Hash))
	})
	return counts
}

func compareHashes(a, b Hash) int { return bytes.Compare(a[:], b[:]) }

// AddEnvironments adds names to a sorted set of them, up to MaxEnvironments.
func AddEnvironments(set []string, names ...string) []string {
	for _, name := range names {
		if i, found := slices.BinarySearch(set, name); !found && name != "" && len(set) < MaxEnvironments {
			set = slices.Insert(set, i, name)
		}
	}
	return set
}

// SampleSlot is where the nth sample of a group, counted from 0, is kept: the first ones for ever, each later one in the
// place of the oldest of the others.
func SampleSlot(n int64) int {
	if n < FirstSamples {
		return int(n)
	}
	return FirstSamples + int((n-FirstSamples)%NewestSamples)
}
