package grouping

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirlog/weir/grouping/trace"
)

// A Trigger is what an alert is told of. Triggers are stored and shown, so
// they are never renamed.
type Trigger string

// The triggers.
const (
	OnNew       Trigger = "new"       // an error has happened for the n-th time in all
	OnRegressed Trigger = "regressed" // it came after it was resolved or archived
	OnUnignored Trigger = "unignored" // it is no longer ignored, as its time or its count has come
	OnSpiking   Trigger = "spiking"   // it happens far more often than before
	OnMany      Trigger = "many"      // so many came within a span
	OnUsers     Trigger = "users"     // so many users were affected within a span
)

// Triggers lists all of them.
func Triggers() []Trigger {
	return []Trigger{OnNew, OnRegressed, OnUnignored, OnSpiking, OnMany, OnUsers}
}

// triggerOf is the trigger of a decision that Weir makes itself.
func triggerOf(d Decision) (t Trigger, any bool) {
	if d.recurs() {
		return OnRegressed, true
	}
	switch t = Trigger(d.Kind); t {
	case OnRegressed, OnUnignored, OnSpiking:
		return t, true
	}
	return "", false
}

// An AlertRule is what is told of a project's errors, when and whom.
type AlertRule struct {
	Name         string        `json:"name"`
	Triggers     []Trigger     `json:"triggers"`
	NewFrom      int64         `json:"new_from"`            // OnNew: the number of the error that tells
	Count        int64         `json:"count,omitempty"`     // OnMany: so many
	Per          time.Duration `json:"per,omitempty"`       // within this, one of Spans
	Users        int64         `json:"users,omitempty"`     // OnUsers: so many
	UsersPer     time.Duration `json:"users_per,omitempty"` // within this, one of Spans
	Severities   Severity      `json:"levels,omitempty"`
	Environments []string      `json:"environments,omitempty"`
	Words        []string      `json:"words,omitempty"` // as in the list's line: all occur in title, type, culprit or the field they name
	Hours        Hours         `json:"hours,omitzero"`
	Gap          time.Duration `json:"gap"`                // between two messages
	Roles        []string      `json:"roles,omitempty"`    // of members who get mail
	Members      []string      `json:"members,omitempty"`  // who get mail as well
	Webhooks     []string      `json:"webhooks,omitempty"` // ids of those that alone get it; none: those that ask for alerts on errors
	MutedUntil   time.Time     `json:"muted_until,omitzero"`
}

// Bounds of alerts.
const (
	MaxRecipients = 20 // members and roles of an alert, and as many webhooks
	MaxAlertName  = 80 // characters
	MaxAlertEnvs  = 20
	MinAlertGap   = time.Minute
	MaxAlertGap   = 24 * time.Hour
	maxNewFrom    = 1_000_000
	maxAlertWords = 20
	maxAlertText  = 256 // bytes of all words
	maxRole       = 64  // bytes that are shown
	maxMutedDays  = 90
)

// DefaultAlertRule is what a new rule begins with. An error that happens once
// is often a fluke, and many never come again: the second one tells. That is
// also soon enough in a project of few errors.
func DefaultAlertRule() AlertRule {
	return AlertRule{Triggers: []Trigger{OnNew, OnRegressed, OnUnignored}, NewFrom: 2, Gap: 5 * time.Minute}
}

// Check returns the first fault, an Invalid. The roles are those that may
// read errors. It does not know the members.
func (r *AlertRule) Check(roles []string, now time.Time) error {
	switch {
	case r.Name == "" || utf8.RuneCountInString(r.Name) > MaxAlertName || !isLine(r.Name):
		return Invalid{"name", fmt.Sprintf("%q is not a valid name.", trace.Clip(r.Name, 2*MaxAlertName)),
			fmt.Sprintf("Use one line of 1 to %d characters.", MaxAlertName)}
	case len(r.Triggers) == 0 || len(r.Triggers) > len(Triggers()):
		return Invalid{"triggers", fmt.Sprintf("The alert has %d triggers.", len(r.Triggers)), "Name some of " + words(Triggers()) + ", each once."}
	case r.NewFrom < 1 || r.NewFrom > maxNewFrom:
		return Invalid{"new_from", fmt.Sprintf("An error would be new after it has happened %d times.", r.NewFrom), "Use 1 to 1,000,000."}
	case r.Gap < MinAlertGap || r.Gap > MaxAlertGap || r.Gap%time.Second != 0:
		return Invalid{"gap_seconds", fmt.Sprintf("There would be %d seconds between two messages.", int64(r.Gap/time.Second)), "Use 60 to 86400 seconds."}
	case r.MutedUntil.After(now.AddDate(0, 0, maxMutedDays)):
		return Invalid{"muted_until", fmt.Sprintf("The alert would be muted until %s.", r.MutedUntil.UTC().Format(time.RFC3339)),
			fmt.Sprintf("Use a time within %d days.", maxMutedDays)}
	}
	for i, t := range r.Triggers {
		if !slices.Contains(Triggers(), t) || slices.Contains(r.Triggers[:i], t) {
			return Invalid{"triggers", fmt.Sprintf("%q is not a trigger, or is named twice.", t), "Name some of " + words(Triggers()) + ", each once."}
		}
	}
	for _, check := range []error{r.checkMany(), r.checkUsers(), r.checkFilter(), r.Hours.check(), r.checkRecipients(roles)} {
		if check != nil {
			return check
		}
	}
	return nil
}

func words[T ~string](of []T) string {
	var texts []string
	for _, word := range of {
		texts = append(texts, string(word))
	}
	return strings.Join(texts, ", ")
}

func (r *AlertRule) checkMany() error {
	_, known := spanWords[r.Per]
	switch many := r.Has(OnMany); {
	case many && (r.Count < 1 || r.Count > maxUntilCount):
		return Invalid{"count", fmt.Sprintf("The count is %d.", r.Count), "Use a number from 1 to 1,000,000,000."}
	case many && !known:
		return Invalid{"per", fmt.Sprintf("per is %s.", r.Per), "Use minute, hour, day or week."}
	case !many && (r.Count != 0 || r.Per != 0):
		return Invalid{"count", fmt.Sprintf("count is %d and per is %s, but the trigger many is missing.", r.Count, r.Per),
			"Add the trigger many, or leave count and per out."}
	}
	return nil
}

func (r *AlertRule) checkUsers() error {
	_, known := spanWords[r.UsersPer]
	switch wanted := r.Has(OnUsers); {
	case wanted && (r.Users < 1 || r.Users > maxUntilCount):
		return Invalid{"users", fmt.Sprintf("The number of users is %d.", r.Users), "Use a number from 1 to 1,000,000,000."}
	case wanted && !known:
		return Invalid{"users_per", fmt.Sprintf("users_per is %s.", r.UsersPer), "Use minute, hour, day or week."}
	case !wanted && (r.Users != 0 || r.UsersPer != 0):
		return Invalid{"users", fmt.Sprintf("users is %d and users_per is %s, but the trigger users is missing.", r.Users, r.UsersPer),
			"Add the trigger users, or leave users and users_per out."}
	}
	return nil
}

func (r *AlertRule) checkFilter() error {
	if len(r.Environments) > MaxAlertEnvs {
		return Invalid{"environments", fmt.Sprintf("There are %d environments.", len(r.Environments)), fmt.Sprintf("Name at most %d.", MaxAlertEnvs)}
	}
	for _, name := range r.Environments {
		if name == "" || len(name) > MaxEnvironment || !isLine(name) {
			return Invalid{"environments", fmt.Sprintf("%q is not a valid environment.", trace.Clip(name, MaxEnvironment)),
				fmt.Sprintf("Use one line of at most %d bytes.", MaxEnvironment)}
		}
	}
	if text := strings.Join(r.Words, " "); len(r.Words) > maxAlertWords || len(text) > maxAlertText || !isLine(text) {
		return Invalid{"q", fmt.Sprintf("The search is %q.", trace.Clip(text, maxAlertText)),
			fmt.Sprintf("Use one line of at most %d words and %d bytes.", maxAlertWords, maxAlertText)}
	}
	return r.checkTerms()
}

// checkTerms refuses what nobody knows of errors as they come.
func (r *AlertRule) checkTerms() error {
	named := map[string]bool{} // bounded by maxAlertWords
	for _, t := range r.terms() {
		shown := trace.Clip(t.String(), maxAlertText)
		switch {
		case named[t.Field] && t.IsSingle():
			return Invalid{"q", fmt.Sprintf("The search names %s: more than once.", t.Field), "Name it once."}
		case t.Field == FieldIs:
			return Invalid{"q", fmt.Sprintf("%q is nothing that an alert can look for.", shown), "Alerts are of unresolved errors; in quotes it is a word."}
		case t.Field == FieldAssigned && t.Value == Me:
			return Invalid{"q", "The search says assigned:me.", "Name whose errors the alert is of: only signed-in members are me."}
		case (t.Field == FieldService || t.Field == FieldHost) && r.Counts():
			return Invalid{"q", fmt.Sprintf("%q can't be counted with the triggers many and users.", shown),
				"Errors are counted by environment, level and release. Leave it out, or make another alert for these triggers."}
		}
		named[t.Field] = true
	}
	return nil
}

// Renamed replaces whom the rule's words name by what name returns for them, if
// that can be typed.
func (r AlertRule) Renamed(name func(assignee string) string) AlertRule {
	words := r.Words
	r.Words = nil
	for _, word := range words {
		if terms := SearchTerms(word); len(terms) == 1 && terms[0].Field == FieldAssigned && terms[0].Value != Nobody && terms[0].Value != Me {
			if to := (Term{FieldAssigned, name(terms[0].Value)}); slices.Equal(SearchTerms(to.String()), []Term{to}) {
				word = to.String()
			}
		}
		r.Words = append(r.Words, word)
	}
	return r
}

func (r *AlertRule) terms() []Term { return SearchTerms(strings.Join(r.Words, " ")) }

// Ask has a rule look for what a line of the list's language says, of a member
// who is me; empty: nobody is. Levels and environments are added to the rule's own.
func (r *AlertRule) Ask(line, member string) error {
	for _, t := range SearchTerms(line) {
		switch level, known := ParseSeverity(t.Value); {
		case t.Field == FieldEnvironment:
			if !slices.Contains(r.Environments, t.Value) {
				r.Environments = append(r.Environments, t.Value)
			}
		case t.Field == FieldLevel && !known:
			return Invalid{"q", fmt.Sprintf("%q is not a level.", trace.Clip(t.Value, maxAlertText)), "Use level: with debug, info, warn, error or fatal."}
		case t.Field == FieldLevel:
			r.Severities |= level
		case t.Field == FieldAssigned && t.Value == Me && member != "":
			r.Words = append(r.Words, Term{FieldAssigned, member}.String())
		default:
			r.Words = append(r.Words, t.String())
		}
	}
	return nil
}

func (r *AlertRule) checkRecipients(roles []string) error {
	if len(r.Members)+len(r.Roles) > MaxRecipients {
		return Invalid{"mail_members", fmt.Sprintf("There are %d recipients.", len(r.Members)+len(r.Roles)),
			fmt.Sprintf("Name at most %d members and roles.", MaxRecipients)}
	}
	if len(r.Webhooks) > MaxRecipients {
		return Invalid{"webhooks", fmt.Sprintf("There are %d webhooks.", len(r.Webhooks)), fmt.Sprintf("Name at most %d.", MaxRecipients)}
	}
	for _, role := range r.Roles {
		if !slices.Contains(roles, role) {
			return Invalid{"mail_roles", fmt.Sprintf("%q is not a role that reads errors.", trace.Clip(role, maxRole)), "Use " + strings.Join(roles, ", ") + "."}
		}
	}
	return nil
}

// Has reports whether the rule has a trigger.
func (r *AlertRule) Has(t Trigger) bool { return slices.Contains(r.Triggers, t) }

// Selects reports whether a rule tells the same errors as another one, to
// whomever and whenever.
func (r *AlertRule) Selects(other *AlertRule) bool {
	of := func(r *AlertRule) AlertRule {
		return AlertRule{Triggers: slices.Sorted(slices.Values(r.Triggers)), NewFrom: r.NewFrom, Count: r.Count, Per: r.Per, Users: r.Users, UsersPer: r.UsersPer,
			Severities:   r.Severities,
			Environments: slices.Sorted(slices.Values(r.Environments)), Words: slices.Sorted(slices.Values(r.Words))}
	}
	return reflect.DeepEqual(of(r), of(other))
}

func (r *AlertRule) inEnvironment(names ...string) bool {
	return len(r.Environments) == 0 || slices.ContainsFunc(names, func(name string) bool { return slices.Contains(r.Environments, name) })
}

func (r *AlertRule) ofSeverity(s Severity) bool { return r.Severities == 0 || r.Severities&s != 0 }

// saysOf reports whether errors have all that the rule's words ask for. Of errors
// about which time decided none came: the release is that of the last one.
func (r *AlertRule) saysOf(g *Counted) bool {
	for _, t := range r.terms() {
		if !g.has(t) {
			return false
		}
	}
	return true
}

func (g *Counted) has(t Term) bool {
	switch t.Field {
	case FieldType:
		return contains(g.Type, t.Value)
	case FieldRelease:
		if len(g.Seen) == 0 {
			return g.LastRelease == t.Value
		}
		return slices.ContainsFunc(g.Seen, func(s Seen) bool { return s.Release == t.Value })
	case FieldService:
		return slices.Contains(g.Services, t.Value)
	case FieldHost:
		return slices.Contains(g.Hosts, t.Value)
	case FieldAssigned:
		return t.Value == Nobody && g.Assignee.ID == "" || g.Assignee.ID == t.Value || g.Assignee.Name != "" && strings.EqualFold(g.Assignee.Name, t.Value)
	default:
		return contains(g.Title+" "+g.Type+" "+g.Culprit, t.Value)
	}
}

// contains ignores case.
func contains(text, part string) bool {
	return strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// looksAt reports whether errors are of an environment and a release that the rule asks for.
func (r *AlertRule) looksAt(s Seen) bool {
	for _, t := range r.terms() {
		if t.Field == FieldRelease && t.Value != s.Release {
			return false
		}
	}
	return r.inEnvironment(s.Environment)
}

// Counted are errors that came to a group, and what followed.
type Counted struct {
	Group                string // its id
	Title, Type, Culprit string
	Status               Status
	Severities           Severity
	Environments         []string
	Assignee             Assignee
	LastRelease          string
	Services, Hosts      []string // of what came now
	Count, Came          int64    // in all, and now
	Seen                 []Seen
	Decided              []Decision
}

// A Notice is what an alert tells of one group.
type Notice struct {
	Group       string    `json:"group"`
	Trigger     Trigger   `json:"trigger"`
	Environment string    `json:"environment,omitempty"`
	Cause       string    `json:"cause"`
	At          time.Time `json:"at"` // when the error that caused it was accepted
	Below       bool      `json:"-"`  // it is not told: the group is new, and has had fewer errors than it takes
}

// Notices are what a rule, which holds for what was accepted since a time, has
// to say of counted errors; reached is when there were too many: see Reach.
func (r *AlertRule) Notices(since time.Time, of *Counted, reached Reached) (notices []Notice) {
	if !r.saysOf(of) {
		return nil
	}
	add := func(t Trigger, environment, cause string, at time.Time) {
		if r.Has(t) && !at.Before(since) {
			notices = append(notices, Notice{Group: of.Group, Trigger: t, Environment: environment, Cause: cause, At: at})
		}
	}
	last := of.last()
	if r.inEnvironment(of.Environments...) && r.ofSeverity(of.Severities) {
		before := of.Count - of.Came
		switch {
		case before < r.NewFrom && of.Count >= r.NewFrom && of.Status == Unresolved:
			add(OnNew, of.newest(r), r.newCause(), last)
		case before == 0 && of.Count < r.NewFrom:
			add(OnNew, "", "", last)
			for i := range notices {
				notices[i].Below = true
			}
		}
	}
	for _, d := range of.Decided {
		if t, tells := triggerOf(d); tells && (d.Environment == "" || r.inEnvironment(d.Environment)) && r.ofSeverity(of.Severities) {
			at := last
			if at.IsZero() {
				at = d.At
			}
			add(t, d.Environment, d.Reason, at)
		}
	}
	if of.Status == Unresolved {
		for _, at := range reached.Errors {
			add(OnMany, of.newest(r), Until{Count: r.Count, Per: r.Per}.within(), at)
		}
		for _, at := range reached.Users {
			add(OnUsers, of.newest(r), r.usersCause(), at)
		}
	}
	return notices
}

func (r *AlertRule) newCause() string {
	if r.NewFrom == 1 {
		return "It is new."
	}
	return fmt.Sprintf("It is new: it has happened %s times.", thousands(int(r.NewFrom)))
}

func (r *AlertRule) usersCause() string {
	if r.Users == 1 {
		return "It affected a user within " + spanWords[r.UsersPer] + "."
	}
	return "It affected " + thousands(int(r.Users)) + " users within " + spanWords[r.UsersPer] + "."
}

// within says that a count was reached.
func (u Until) within() string {
	return "It happened " + thousands(int(u.Count)) + " times within " + spanWords[u.Per] + "."
}

// last is when the last of the errors was accepted; zero: none came.
func (g *Counted) last() time.Time { return lastArrival(g.Seen) }

// newest is an environment of the errors that the rule looks at.
func (g *Counted) newest(r *AlertRule) string {
	for _, seen := range slices.Backward(g.Seen) {
		if r.looksAt(seen) {
			return seen.Environment
		}
	}
	return ""
}

// Reached is when errors, or the users whom they affected, were enough for a rule.
type Reached struct{ Errors, Users []time.Time }

// Any reports whether any were.
func (r Reached) Any() bool { return len(r.Errors)+len(r.Users) > 0 }

// Counts reports whether the rule is about what comes within a span.
func (r *AlertRule) Counts() bool { return r.Has(OnMany) || r.Has(OnUsers) }

// Reach counts errors of a group, and their users, by when they were accepted,
// in this order.
func (r *AlertRule) Reach(since time.Time, came []Seen, burst *Burst) (reached Reached) {
	if burst.At.Before(since) {
		*burst = Burst{} // of another rule
	}
	for _, a := range r.arrived(since, came) {
		if r.Has(OnMany) && burst.add(a, r.Count, r.Per) {
			reached.Errors = append(reached.Errors, a.At)
		}
		if r.Has(OnUsers) && burst.UserCount.add(a.At, a.Users, r.Users, r.UsersPer) {
			reached.Users = append(reached.Users, a.At)
		}
		if a.At.After(burst.At) {
			burst.At = a.At
		}
	}
	return reached
}

// arrived are the errors that the rule looks at, in their order.
func (r *AlertRule) arrived(since time.Time, came []Seen) (arrived []Arrival) {
	for _, seen := range came {
		if !r.looksAt(seen) {
			continue
		}
		for _, a := range seen.Arrived {
			if r.ofSeverity(a.Severity) && !a.At.Before(since) {
				arrived = append(arrived, a)
			}
		}
	}
	slices.SortFunc(arrived, func(a, b Arrival) int { return a.At.Compare(b.At) })
	return arrived
}

// A Burst counts the errors of a group by their acceptance. It tells once that
// they are enough, and again when they have been fewer in between.
type Burst struct {
	Progress
	Told bool      `json:"told,omitempty"`
	At   time.Time `json:"at,omitzero"` // of the newest one

	UserCount UserCount `json:"crowd,omitzero"` // the users
}

func (b *Burst) add(a Arrival, enough int64, per time.Duration) (tells bool) {
	b.Progress.add(a.At.UnixMicro(), 0, per)
	if b.within(per) < enough {
		b.Told = false
	}
	b.Progress.add(a.At.UnixMicro(), a.N, per)
	tells = !b.Told && b.within(per) >= enough
	b.Told = b.Told || tells
	return tells
}
