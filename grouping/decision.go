package grouping

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A Kind says what was decided about a group. Kinds are stored and
// shown, so they are never renamed.
type Kind string

// The kinds. Weir itself decides the last four, when errors come or time is over.
const (
	WasResolved  Kind = "resolved"
	WasIgnored   Kind = "ignored"
	WasReopened  Kind = "reopened" // it was resolved, or archived
	WasAssigned  Kind = "assigned"
	WasNoted     Kind = "noted"
	WasMerged    Kind = "merged"   // into another group, or others into it
	WasUnmerged  Kind = "unmerged" // is a group of its own again, or others are
	WasSplit     Kind = "split"    // errors like some are another group from then on
	WasLinked    Kind = "linked"   // to a ticket, or the like
	WasUnlinked  Kind = "unlinked"
	WasUnignored Kind = "unignored"
	WasRegressed Kind = "regressed"
	WasSpiking   Kind = "spiking" // it happens far more often than before
	WasQuiet     Kind = "quiet"   // no error came for so long that it is archived
)

// Kinds lists all of them.
func Kinds() []Kind {
	return []Kind{
		WasResolved, WasIgnored, WasReopened, WasAssigned, WasNoted, WasMerged, WasUnmerged, WasSplit, WasLinked, WasUnlinked,
		WasUnignored, WasRegressed, WasSpiking, WasQuiet,
	}
}

// A Decision is an event of a group's stream.
type Decision struct {
	Kind        Kind       `json:"-"`  // its name says it
	At          time.Time  `json:"at"` // when it was made; of Weir's own: when the error that caused it happened
	Resolution  Resolution `json:"resolution,omitzero"`
	Until       Until      `json:"until,omitzero"`
	Assignee    Assignee   `json:"assignee,omitzero"`
	Note        string     `json:"note,omitempty"`
	Mentions    []string   `json:"mentions,omitempty"` // ids of the members whom the note mentions, who get mail
	Unknown     []string   `json:"unknown,omitempty"`  // what it says after an @ that is the name of no member, or of several
	Into        string     `json:"into,omitempty"`     // the head that it was merged into, or the group of what was split off
	From        string     `json:"from,omitempty"`     // the head that it was taken out of
	Groups      []string   `json:"groups,omitempty"`   // of the head: those that were merged, taken out or split off, sorted
	Level       HashScope  `json:"level,omitempty"`    // at which errors are split off
	Like        string     `json:"like,omitempty"`     // their hash in SplitHashes
	Reason      string     `json:"reason,omitempty"`   // why Weir itself decided
	Release     string     `json:"release,omitempty"`  // of the error that caused it
	Environment string     `json:"environment,omitempty"`
	Spike       Spike      `json:"spike,omitzero"`
	Seen        time.Time  `json:"seen,omitzero"` // the last error of a group that is quiet
	Link        Link       `json:"link,omitzero"`
}

// A Resolution is where a fault is mended. The zero one is
// mended everywhere: any later error is a regression.
type Resolution struct {
	Release string            `json:"release,omitempty"` // in this release and those after it
	Next    bool              `json:"next,omitempty"`    // in the release after the ones that were known
	After   map[string]string `json:"after,omitempty"`   // for Next: the newest release of each environment; bounded by the releases of a project
}

// IsZero is for what is mended everywhere.
func (r Resolution) IsZero() bool { return r.equal(Resolution{}) }

func (r Resolution) equal(other Resolution) bool {
	return r.Release == other.Release && r.Next == other.Next && maps.Equal(r.After, other.After)
}

// Until ends what is ignored. The zero one never does.
type Until struct {
	At    time.Time     `json:"at,omitzero"`     // when this time has come; zero: no time
	Count int64         `json:"count,omitempty"` // when so many errors have come; 0: any number
	Users int64         `json:"users,omitempty"` // when they have affected so many users, by a UserCount; 0: any number
	Per   time.Duration `json:"per,omitempty"`   // when they come within this span, one of Spans; 0: in all
}

// counts reports whether errors are counted.
func (u Until) counts() bool { return u.Count > 0 || u.Users > 0 }

// An Assignee is who looks after a group: a member, or any label, such as a team.
type Assignee struct {
	ID   string `json:"id"`             // of the member, or the label itself
	Name string `json:"name,omitempty"` // of the member when it was assigned; empty: unknown, or a label
}

// State is what is decided about a group. Zero is an unresolved one.
type State struct {
	Status     Status     `json:"status"`
	Since      time.Time  `json:"since,omitzero"`      // of the status
	Regressed  bool       `json:"regressed,omitempty"` // an error came after it was resolved; a person's decision about its status ends that
	Resolution Resolution `json:"resolution,omitzero"`
	Until      Until      `json:"until,omitzero"`
	Assignee   Assignee   `json:"assignee,omitzero"`
	Progress   Progress   `json:"progress,omitzero"`
	Spike      Spike      `json:"spike,omitzero"`   // the last one
	Into       string     `json:"into,omitempty"`   // the head that it is merged into, whose state counts instead
	Splits     int        `json:"splits,omitempty"` // how often it was split
	Seen       time.Time  `json:"seen,omitzero"`    // of an archived group: its last error, behind which another one opens it again
	Links      []Link     `json:"links,omitempty"`  // bounded by MaxLinks
}

// Progress counts the errors of an ignored group since it is
// ignored. It follows from the errors, so no event has it.
type Progress struct {
	Count     int64     `json:"count,omitempty"`
	Newest    int64     `json:"newest,omitempty"` // number of the newest span
	Spans     []int64   `json:"spans,omitempty"`  // errors of the newest span and those before it; see spansPer
	UserCount UserCount `json:"crowd,omitzero"`   // the users
}

// IsZero is for a group that is not ignored.
func (p Progress) IsZero() bool { return p.Count == 0 && p.UserCount.IsZero() }

// Counts reports whether errors change the progress of an ignored group.
func (s State) Counts() bool { return s.Until.counts() }

// Apply adds a decision to the state.
func (s *State) Apply(d Decision) {
	switch d.Kind {
	case WasResolved:
		s.become(State{Status: Resolved, Since: d.At, Resolution: d.Resolution})
	case WasIgnored:
		s.become(State{Status: Ignored, Since: d.At, Until: d.Until})
	case WasReopened, WasUnignored, WasRegressed:
		s.become(State{Status: Unresolved, Since: d.At, Regressed: d.Kind == WasRegressed})
	case WasQuiet:
		s.become(State{Status: Archived, Since: d.At, Seen: d.Seen})
	case WasAssigned:
		s.Assignee = d.Assignee
	case WasLinked, WasUnlinked:
		s.link(d)
	case WasSpiking:
		s.Spike = d.Spike
	case WasMerged, WasUnmerged:
		if d.Into+d.From != "" { // else it is the head, and stays as it is
			s.become(State{Status: Unresolved, Since: d.At, Into: d.Into})
		}
	}
	if d.Like != "" {
		s.Splits++
	}
	s.Status = cmp.Or(s.Status, Unresolved)
}

// become changes the status, and keeps what is no part of it.
func (s *State) become(next State) {
	next.Assignee, next.Splits, next.Spike, next.Links = s.Assignee, s.Splits, s.Spike, s.Links
	*s = next
}

// A Command is what somebody wants of a group. What is zero leaves it as it is.
type Command struct {
	Status     Status
	Resolution Resolution
	Until      Until
	Assign     *Assignee // the zero one: nobody
	Note       string
	Mentions   []string // ids of the members whom the note mentions; see Named
	Unknown    []string // what the note has after an @ that mentions nobody
	Links      *[]Link  // all that the group is to have; nil: as they are
	IfVersion  *int64   // refuses another version; nil: none
}

// An Invalid is a fault of a command.
type Invalid struct{ Field, Detail, Fix string }

func (i Invalid) Error() string { return i.Detail + " " + i.Fix }

// A Conflict means that a group was decided about meanwhile.
type Conflict struct {
	Wanted, Version int64
	Group           string // its id
}

func (c Conflict) Error() string {
	return fmt.Sprintf("The group is at version %d, not %d: somebody decided meanwhile.", c.Version, c.Wanted)
}

// Bounds of what is decided.
const (
	MaxDecisions  = 1000 // of a group
	MaxNote       = 2000 // characters
	MaxAssignee   = 100  // characters
	maxUntilCount = 1e9  // errors
	maxUntilYears = 10   // from now
	spansPer      = 10   // of Until.Per, by which errors are counted
)

// ErrFull means that a group has as many decisions as it may.
var ErrFull = fmt.Errorf("there are %d decisions about the group, as many as there may be", MaxDecisions)

// Decide returns the events that carry out a command on a group of a
// version. What is so already makes none.
func (s State) Decide(c Command, version int64, now time.Time) (decided []Decision, err error) {
	if err := c.check(now); err != nil {
		return nil, err
	}
	if c.IfVersion != nil && *c.IfVersion != version {
		return nil, Conflict{Wanted: *c.IfVersion, Version: version}
	}
	if d, changes := s.changeOf(c); changes {
		decided = append(decided, d)
	}
	if c.Assign != nil && c.Assign.ID != s.Assignee.ID {
		decided = append(decided, Decision{Kind: WasAssigned, Assignee: *c.Assign})
	}
	if c.Note != "" {
		decided = append(decided, Decision{Kind: WasNoted, Note: c.Note, Mentions: c.Mentions, Unknown: c.Unknown})
	}
	if c.Links != nil {
		decided = append(decided, s.linked(*c.Links)...)
	}
	if version+int64(len(decided)) > MaxDecisions && len(decided) > 0 {
		return nil, ErrFull
	}
	for i := range decided {
		decided[i].At = now
	}
	return decided, nil
}

// changeOf is the change of the status that a command wants.
func (s State) changeOf(c Command) (d Decision, changes bool) {
	switch c.Status {
	case Resolved:
		return Decision{Kind: WasResolved, Resolution: c.Resolution}, s.Status != Resolved || !s.Resolution.equal(c.Resolution)
	case Ignored:
		return Decision{Kind: WasIgnored, Until: c.Until}, s.Status != Ignored || s.Until != c.Until
	case Unresolved:
		kind := WasReopened
		if s.Status == Ignored {
			kind = WasUnignored
		}
		return Decision{Kind: kind}, s.Status != Unresolved && s.Status != ""
	}
	return Decision{}, false
}

func (c Command) check(now time.Time) error {
	switch {
	case c.Status == "" && c.Assign == nil && c.Note == "" && c.Links == nil:
		return Invalid{"", "The request decides nothing.", "Send a status, an assignee, a note or external_links."}
	case c.Status == Archived:
		return Invalid{"status", "Only Weir archives, after as many quiet days as the project's error settings say.", "Use unresolved, resolved or ignored."}
	case c.Status != Resolved && (c.Resolution.Release != "" || c.Resolution.Next):
		return Invalid{"in_release", "Only what is resolved is so in a release.", `Send status "resolved" with it.`}
	case len(c.Resolution.Release) > MaxRelease || !isLine(c.Resolution.Release):
		return Invalid{"in_release", "This is not the name of a release.", fmt.Sprintf("Use a name of one line and at most %d bytes.", MaxRelease)}
	case utf8.RuneCountInString(c.Note) > MaxNote || strings.ContainsRune(c.Note, 0):
		return Invalid{"note", "The note is too long or has U+0000.", fmt.Sprintf("Use at most %d characters.", MaxNote)}
	case len(c.Mentions) > MaxMentions:
		return Invalid{"note", fmt.Sprintf("The note mentions %d members.", len(c.Mentions)), fmt.Sprintf("Mention at most %d.", MaxMentions)}
	case c.Assign != nil && (utf8.RuneCountInString(c.Assign.ID) > MaxAssignee || !isLine(c.Assign.ID)):
		return Invalid{"assignee", fmt.Sprintf("%q is nobody.", c.Assign.ID),
			fmt.Sprintf("Use a member's id or a label of one line and at most %d characters; \"\" is nobody.", MaxAssignee)}
	}
	if c.Links != nil {
		if err := checkLinks(*c.Links); err != nil {
			return err
		}
	}
	return c.checkUntil(now)
}

// isLine reports whether text is one line without surrounding blanks.
func isLine(text string) bool {
	return strings.TrimSpace(text) == text && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == utf8.RuneError })
}

func (c Command) checkUntil(now time.Time) error {
	u := c.Until
	switch {
	case u == Until{}:
		return nil
	case c.Status != Ignored:
		return Invalid{"until", "Only what is ignored is so until something.", `Send status "ignored" with it.`}
	case !u.At.IsZero() && (!u.At.After(now) || u.At.After(now.AddDate(maxUntilYears, 0, 0))):
		return Invalid{"until/at", fmt.Sprintf("It would end at %s.", u.At.UTC().Format(time.RFC3339)),
			fmt.Sprintf("Use a time after now, within %d years, or leave it out.", maxUntilYears)}
	case u.Count < 0 || u.Count > maxUntilCount:
		return Invalid{"until/count", fmt.Sprintf("The count is %d.", u.Count), "Use a number from 1 to 1,000,000,000."}
	case u.Users < 0 || u.Users > maxUntilCount:
		return Invalid{"until/users", fmt.Sprintf("The number of users is %d.", u.Users), "Use a number from 1 to 1,000,000,000."}
	case u.Per != 0 && !u.counts():
		return Invalid{"until/per", "A span needs a number of errors or users.", "Send count or users with it."}
	}
	return nil
}

// Seen are errors of one environment and release. Without
// a release they are those that named none.
type Seen struct {
	Environment, Release string
	Accepted             time.Time // the first
	Times                []int64   // when they happened, in microseconds
	Arrived              []Arrival
}

// Arrival are errors of one level that were accepted within arrivalSpan.
type Arrival struct {
	At       time.Time // the last
	Severity Severity
	N        int64
	Users    []uint64 // hashes of those whom they affected, some more than once; bounded by the errors of a transaction
}

// Observe counts errors of a group, and returns what follows for its
// status. What happened before the status was decided follows nothing.
func (s *State) Observe(seen []Seen, known SeenReleases) (d Decision, follows bool) {
	switch s.Status {
	case Resolved:
		return s.regression(seen, known)
	case Ignored:
		return s.overdue(seen)
	case Archived:
		return s.recurrence(seen)
	}
	return Decision{}, false
}

// regression is the decision of the first error that shows
// that a resolved fault is not mended.
func (s *State) regression(seen []Seen, known SeenReleases) (d Decision, found bool) {
	since, first := s.Since.UnixMicro(), int64(0)
	var of Seen
	for _, kind := range seen {
		if !s.Resolution.broken(kind, s.Since, known) {
			continue
		}
		for _, at := range kind.Times {
			if at > since && (!found || at < first || at == first && cmp.Or(cmp.Compare(kind.Environment, of.Environment), cmp.Compare(kind.Release, of.Release)) < 0) {
				of, first, found = kind, at, true
			}
		}
	}
	if !found {
		return Decision{}, false
	}
	return Decision{
		Kind: WasRegressed, At: time.UnixMicro(first).UTC(), Release: of.Release, Environment: of.Environment,
		Reason: "It happened" + in(of) + " after it was resolved" + s.Resolution.words() + ".",
	}, true
}

// broken reports whether errors of a kind, from after the decision, show
// that the fault is not mended. Errors of older releases don't,
// and those without one don't where a release was named.
func (r Resolution) broken(kind Seen, decided time.Time, known SeenReleases) bool {
	switch {
	case r.Next:
		first, sighted := known.first(kind.Release)
		return sighted && first.After(decided) && r.follows(kind)
	case r.Release != "":
		return kind.Release != "" && known.reached(kind.Release, r.Release)
	}
	return true
}

// follows reports whether a release that nobody had seen is newer than
// the one that its environment then had.
func (r Resolution) follows(kind Seen) bool {
	before, had := r.After[kind.Environment]
	if order, versions := compareVersions(kind.Release, before); had && versions && order <= 0 {
		return false
	}
	for _, other := range r.After {
		return samePackage(kind.Release, other) // as all of them are
	}
	return true
}

func (r Resolution) words() string {
	switch {
	case r.Next:
		return " in the next release"
	case r.Release != "":
		return " in " + r.Release
	}
	return ""
}

func in(kind Seen) (words string) {
	if kind.Release != "" {
		words = " in " + kind.Release
	}
	if kind.Environment != "" {
		words += " in " + kind.Environment
	}
	return words
}

// overdue counts errors of an ignored group, in the order
// of their times, and ends that when its bound is reached.
func (s *State) overdue(seen []Seen) (d Decision, ends bool) {
	since := s.Since.UnixMicro()
	var times []int64
	for _, kind := range seen {
		for _, at := range kind.Times {
			if at > since {
				times = append(times, at)
			}
		}
	}
	slices.Sort(times)
	for _, micros := range times {
		if at := time.UnixMicro(micros).UTC(); s.Due(at) {
			return s.Expired(), true
		}
		if s.Until.Count == 0 {
			continue
		}
		s.Progress.add(micros, 1, s.Until.Per)
		if n := s.Progress.within(s.Until.Per); n >= s.Until.Count {
			return Decision{Kind: WasUnignored, At: time.UnixMicro(micros).UTC(), Reason: "It happened " + timesOf(s.Until.Count) + s.Until.since()}, true
		}
	}
	return s.enoughUsers(seen)
}

// enoughUsers counts the users of errors that were accepted since the group is
// ignored, and ends that when there are enough.
func (s *State) enoughUsers(seen []Seen) (d Decision, ends bool) {
	if s.Until.Users == 0 {
		return Decision{}, false
	}
	var arrived []Arrival
	for _, kind := range seen {
		for _, a := range kind.Arrived {
			if len(a.Users) > 0 && a.At.After(s.Since) {
				arrived = append(arrived, a)
			}
		}
	}
	slices.SortFunc(arrived, func(a, b Arrival) int { return a.At.Compare(b.At) })
	for _, a := range arrived {
		if s.Progress.UserCount.add(a.At, a.Users, s.Until.Users, cmp.Or(s.Until.Per, forEver)) {
			affected := thousands(int(s.Until.Users)) + " users"
			if s.Until.Users == 1 {
				affected = "a user"
			}
			return Decision{Kind: WasUnignored, At: a.At.UTC(), Reason: "It affected " + affected + s.Until.since()}, true
		}
	}
	return Decision{}, false
}

// forEver is longer than anything is ignored.
const forEver = 10 * maxUntilYears * 365 * 24 * time.Hour

func timesOf(n int64) string {
	if n == 1 {
		return "once"
	}
	return thousands(int(n)) + " times"
}

func (u Until) since() string {
	if u.Per == 0 {
		return " since it was ignored."
	}
	return " within " + spanWords[u.Per] + "."
}

// Spans are those within which errors can be counted, by name.
var Spans = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour} // bounded by these

var spanWords = map[time.Duration]string{ // bounded by these
	time.Minute: "a minute", time.Hour: "an hour", 24 * time.Hour: "a day", 7 * 24 * time.Hour: "a week",
}

// Due reports whether an ignored group's time is over.
func (s State) Due(now time.Time) bool {
	return s.Status == Ignored && !s.Until.At.IsZero() && now.After(s.Until.At)
}

// Expired is the decision that ends an ignored group whose time is over.
func (s State) Expired() Decision {
	return Decision{Kind: WasUnignored, At: s.Until.At, Reason: "It was ignored until " + s.Until.At.UTC().Format("2006-01-02 15:04:05") + " UTC."}
}

// add counts n errors in all, or in their span: a tenth of per.
// Those that are older than all of them are not counted.
func (p *Progress) add(at, n int64, per time.Duration) {
	p.Count += n
	if per == 0 {
		return
	}
	span := spanOf(at, per)
	if p.Spans == nil {
		p.Newest = span
	}
	spans := make([]int64, spansPer)
	newer := max(0, span-p.Newest) // how far the spans move
	if newer < int64(len(p.Spans)) {
		copy(spans[newer:], p.Spans)
	}
	p.Spans, p.Newest = spans, p.Newest+newer
	if age := p.Newest - span; age < spansPer {
		p.Spans[age] += n
	}
}

// spanOf is the number of the span of an instant.
func spanOf(at int64, per time.Duration) int64 {
	length := (per / spansPer).Microseconds()
	return (at - ((at%length)+length)%length) / length
}

// within is how many errors are counted.
func (p *Progress) within(per time.Duration) (n int64) {
	if per == 0 {
		return p.Count
	}
	for _, errors := range p.Spans {
		n += errors
	}
	return n
}
