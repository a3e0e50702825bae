package grouping

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/grouping/trace"
)

// Bounds of what is kept of a group.
const (
	MaxGroupReleases = 50  // of a group, those that came last; first and last one are kept beside them
	MaxEnvironments  = 50  // different ones of a group; further ones are not named
	MaxEnvironment   = 256 // bytes of a name; what follows distinguishes no two
	FirstSamples     = 5   // occurrences that are never replaced: the first
	NewestSamples    = 20  // and the newest
	MaxSamples       = FirstSamples + NewestSamples
	newestSamples    = 5  // of one tally: the newest of a storm are much alike
	maxSeen          = 20 // environments and releases of one tally that are told apart
)

// Tally adds up occurrences before they are
// stored: a storm of one error costs one write.
type Tally struct {
	grouper Grouper
	counts  map[countKey]*Count // bounded by the records of a transaction
	arrived int64
}

type countKey struct {
	organization, project string
	hour                  int64
	strictest             Hash
}

// Count is the number of errors with one
// strictest hash that were accepted in one hour.
type Count struct {
	Organization string
	Project      string
	Hour         time.Time    // whose budget of new groups is charged if it creates one
	Hashes       []ScopedHash // those that join, the strictest first; the last one decides
	Similar      Hash         // the loosest hash
	N            int64
	First, Last  time.Time
	Expires      time.Time // the latest
	Severities   Severity
	Environments []string
	Services     []string // bounded as environments, as the next ones
	Hosts        []string
	Samples      []*Sample // the first ones and the newest, in the order of arrival
	Seen         []Seen    // by environment and release
	Days         Days
	Entries      EntrySearch

	ofOrganization bool // the organization's budget was used up, not the project's
}

// Sample is an occurrence, and how many came before it.
type Sample struct {
	Occurrence
	Arrival     int64
	Exceptions  []trace.Exception // nil: not described yet
	Language    trace.Language    // of these
	SplitHashes SplitHashes       // once described
}

// Describe parses the exceptions of a sample unless it
// has them. A tally does not: most samples of a storm are
// replaced, and most kinds of a flood create no group.
func (s *Sample) Describe(g *Grouper) {
	if s.Exceptions == nil {
		s.describe(g)
	}
}

func (s *Sample) describe(g *Grouper) (Description, Explanation) {
	f := g.Fingerprint(s.Error)
	d, why := f.Describe(), f.Explain()
	s.Exceptions, s.Language, s.SplitHashes = d.Exceptions, d.Language, f.splitHashes(s.Error)
	return d, why
}

// Describe describes the group that c creates, and
// why it is one. It also describes the first sample.
func (c *Count) Describe(g *Grouper) (Description, Explanation) {
	s := c.Samples[0]
	d, why := s.describe(g)
	if split, joins, found := s.Error.Learned.Splits.of(s.SplitHashes, s.Accepted); found {
		why.Scope, why.Hash, why.Rule = joins.Scope, joins.Hash, RuleSplit
		why.Parts = append(why.Parts, Part{"group", split.From})
	}
	return d, why
}

// Created says why a sample created a group that is explained so.
func (s *Sample) Created(why Explanation) string {
	cause := "Its first error came" + in(Seen{Environment: s.Environment, Release: s.Release}) + "."
	if at := slices.IndexFunc(why.Parts, func(p Part) bool { return why.Rule == RuleSplit && p.Kind == "group" }); at >= 0 {
		cause += " Errors like it were split off from " + why.Parts[at].Value + "."
	}
	return cause
}

// BudgetPeriod is the span of acceptance
// that one budget of new groups covers.
const BudgetPeriod = time.Hour

// NewTally returns an empty tally.
func NewTally() *Tally { return &Tally{counts: map[countKey]*Count{}} }

// Add counts one occurrence. It returns what that was added to.
func (t *Tally) Add(o Occurrence) *Count {
	o.Environment = trace.Clip(o.Environment, MaxEnvironment)
	o.Release = KnownRelease(o.Release)
	f := t.grouper.Fingerprint(o.Error)
	hour := o.Accepted.UTC().Truncate(BudgetPeriod)
	key := countKey{o.Organization, o.Project, hour.Unix(), f.Strictest.Hash}
	var joining []ScopedHash
	var similar Hash
	if splits := o.Error.Learned.Splits; len(splits) > 0 {
		joining, similar = f.Joining(), f.Similar()
		if _, joins, found := splits.of(f.splitHashes(o.Error), o.Accepted); found {
			joining, key.strictest = []ScopedHash{joins}, joins.Hash
		}
	}
	c, ok := t.counts[key]
	if !ok {
		if joining == nil {
			joining, similar = f.Joining(), f.Similar()
		}
		c = &Count{
			Organization: o.Organization, Project: o.Project, Hour: hour, Hashes: joining,
			Similar: similar, First: o.At, Last: o.At,
		}
		t.counts[key] = c
	}
	c.add(Sample{Occurrence: o, Arrival: t.arrived})
	t.arrived++
	return c
}

func (c *Count) add(o Sample) {
	c.N++
	users := usersOf(o.Occurrence)
	c.see(o.Occurrence, users)
	c.Days.add(o.Occurrence, users)
	c.Entries.add(o.Occurrence)
	c.Severities |= o.Severity
	c.Environments = AddNames(c.Environments, o.Environment)
	c.Services = AddNames(c.Services, trace.Clip(o.Service, MaxEnvironment))
	c.Hosts = AddNames(c.Hosts, trace.Clip(o.Host, MaxEnvironment))
	if o.At.Before(c.First) {
		c.First = o.At
	}
	if o.At.After(c.Last) {
		c.Last = o.At
	}
	if o.Expires.After(c.Expires) {
		c.Expires = o.Expires
	}
	if most := int64(FirstSamples + newestSamples); c.N > most { // the oldest of the newest
		*c.Samples[FirstSamples+(c.N-1-FirstSamples)%newestSamples] = o
	} else {
		c.Samples = append(c.Samples, &o)
	}
}

func (c *Count) sortSamples() {
	slices.SortFunc(c.Samples, func(a, b *Sample) int { return cmp.Compare(a.Arrival, b.Arrival) })
}

// see adds an occurrence to those of its environment and release. Beyond
// maxSeen of them, all others share one without names.
func (c *Count) see(o Occurrence, users []uint64) {
	at := slices.IndexFunc(c.Seen, func(s Seen) bool { return s.Environment == o.Environment && s.Release == o.Release })
	if at < 0 && len(c.Seen) >= maxSeen {
		o.Environment, o.Release = "", ""
		at = slices.IndexFunc(c.Seen, func(s Seen) bool { return s.Environment == "" && s.Release == "" })
	}
	if at < 0 {
		at = len(c.Seen)
		c.Seen = append(c.Seen, Seen{Environment: o.Environment, Release: o.Release, Accepted: o.Accepted})
	}
	s := &c.Seen[at]
	if o.Accepted.Before(s.Accepted) {
		s.Accepted = o.Accepted
	}
	s.Times = append(s.Times, o.At.UnixMicro())
	s.arrive(Arrival{o.Accepted, o.Severity, 1, users})
}

// arrivalSpan is the shortest span by which arrivals are counted.
const arrivalSpan = time.Minute / spansPer

// arrive adds to an arrival of the same span and level among the last ones.
func (s *Seen) arrive(a Arrival) {
	for i := len(s.Arrived) - 1; i >= max(0, len(s.Arrived)-len(severities)); i-- {
		known := &s.Arrived[i]
		if known.Severity != a.Severity || !known.At.Truncate(arrivalSpan).Equal(a.At.Truncate(arrivalSpan)) {
			continue
		}
		if known.N += a.N; a.At.After(known.At) {
			known.At = a.At
		}
		if n := len(known.Users); len(a.Users) > 0 && (n == 0 || known.Users[n-1] != a.Users[0]) {
			known.Users = append(known.Users, a.Users...)
		}
		return
	}
	s.Arrived = append(s.Arrived, a)
}

// Merge adds d to c. Both must belong to one group.
func (c *Count) Merge(d *Count) {
	c.N += d.N
	c.Seen = append(c.Seen, d.Seen...)
	for _, day := range d.Days {
		c.Days.Of(day.Number).Merge(day)
	}
	c.Entries.Merge(d.Entries)
	c.Severities |= d.Severities
	c.Environments = AddNames(c.Environments, d.Environments...)
	c.Services = AddNames(c.Services, d.Services...)
	c.Hosts = AddNames(c.Hosts, d.Hosts...)
	if d.First.Before(c.First) {
		c.First = d.First
	}
	if d.Last.After(c.Last) {
		c.Last = d.Last
	}
	if d.Expires.After(c.Expires) {
		c.Expires = d.Expires
	}
	c.Samples = append(c.Samples, d.Samples...)
	c.sortSamples()
	if n := len(c.Samples); n > FirstSamples+newestSamples {
		c.Samples = slices.Delete(c.Samples, FirstSamples, n-newestSamples)
	}
}

// Releases are that of the earliest occurrence, which may name none, and that
// of the latest one that did; empty: there is none.
func (c *Count) Releases() (first, last string) {
	var from, to int64
	for i, s := range c.Seen {
		if at := slices.Min(s.Times); i == 0 || at < from || at == from && first == "" {
			first, from = s.Release, at
		}
		if at := slices.Max(s.Times); s.Release != "" && (last == "" || at > to) {
			last, to = s.Release, at
		}
	}
	return first, last
}

// SeenReleases are the releases of its errors, in the order in which they came, at most MaxGroupReleases.
func (c *Count) SeenReleases() (names []string) {
	for _, s := range slices.SortedStableFunc(slices.Values(c.Seen), func(a, b Seen) int { return a.Accepted.Compare(b.Accepted) }) {
		if s.Release != "" && !slices.Contains(names, s.Release) {
			names = append(names, s.Release)
		}
	}
	return names[max(0, len(names)-MaxGroupReleases):]
}

// LastAccepted is when the last of its errors was accepted.
func (c *Count) LastAccepted() time.Time { return lastArrival(c.Seen) }

// lastArrival is when the last of some errors was accepted; zero: there are none.
func lastArrival(seen []Seen) (at time.Time) {
	for _, s := range seen {
		for _, arrival := range s.Arrived {
			if arrival.At.After(at) {
				at = arrival.At
			}
		}
	}
	return at
}

// Deciding is the hash that names the group.
func (c *Count) Deciding() ScopedHash { return c.Hashes[len(c.Hashes)-1] }

// Arrival is the place of c's first occurrence in the tally.
func (c *Count) Arrival() int64 { return c.Samples[0].Arrival }

// Counts returns the counts in one order everywhere,
// so that those who lock rows in it do not deadlock.
func (t *Tally) Counts() []*Count {
	counts := make([]*Count, 0, len(t.counts))
	for _, c := range t.counts {
		c.sortSamples()
		counts = append(counts, c)
	}
	slices.SortFunc(counts, func(a, b *Count) int {
		return cmp.Or(cmp.Compare(a.Organization, b.Organization), cmp.Compare(a.Project, b.Project),
			compareHashes(a.Deciding().Hash, b.Deciding().Hash), cmp.Compare(a.Arrival(), b.Arrival()))
	})
	return counts
}

func compareHashes(a, b Hash) int { return bytes.Compare(a[:], b[:]) }

// AddNames adds names to a sorted set, up to MaxEnvironments.
func AddNames(set []string, names ...string) []string {
	for _, name := range names {
		if i, found := slices.BinarySearch(set, name); !found && name != "" && len(set) < MaxEnvironments {
			set = slices.Insert(set, i, name)
		}
	}
	return set
}

// SampleSlot is the slot of a group's nth sample, from 0. The first
// samples stay; each later one replaces the oldest of the others.
func SampleSlot(n int64) int {
	if n < FirstSamples {
		return int(n)
	}
	return FirstSamples + int((n-FirstSamples)%NewestSamples)
}

// Budgets limit how many groups the errors of one hour may
// create: in a project, and in all projects of an organization.
// New groups beyond that share the project's overflow group, so
// a flood of unique types is counted exactly and fills no table.
type Budgets struct{ Project, Organization int }

// OverflowVersion is the overflow hash's. No algorithm has it.
const OverflowVersion = 0

// overflowHash leads to the overflow of a project.
func overflowHash() ScopedHash {
	sum := sha256.Sum256([]byte("0 budget\n"))
	return ScopedHash{OverflowVersion, ScopeBudget, Hash(sum[:16])}
}

// Overflow moves c to its project's overflow, as its budget
// is used up or, if ofOrganization, that of the organization.
func (c *Count) Overflow(ofOrganization bool) {
	p := overflowHash()
	c.Hashes, c.Similar, c.ofOrganization = []ScopedHash{p}, p.Hash, ofOrganization
}

// Overflowed reports whether c belongs to an overflow.
func (c *Count) Overflowed() bool { return c.Deciding().Scope == ScopeBudget }

// DescribeOverflow describes c's overflow by the budget that was used up.
func (c *Count) DescribeOverflow(budgets Budgets) (Description, Explanation) {
	most, whose, who := budgets.Project, "", "The project had created"
	if c.ofOrganization {
		most, whose, who = budgets.Organization, " in all projects", "All projects of the organization together had created"
	}
	rule := who + " " + thousands(most) + " new groups in the hour in which these errors were accepted, as many as may be. " +
		"They are counted here, whatever they are; errors of groups that were there before went on joining those. " +
		"Errors whose type or message holds an id or a value that is new each time are a common cause: see the samples."
	p := overflowHash()
	return Description{Title: "More errors than " + thousands(most) + " new groups an hour" + whose, Language: trace.Unknown},
		Explanation{Version: p.Version, Scope: p.Scope, Hash: p.Hash, Language: trace.Unknown, Rule: Rule(rule)}
}

// thousands writes n with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
