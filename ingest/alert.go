package ingest

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bounds of an alert.
const (
	MinAlertSpan   = time.Minute
	MaxAlertEvery  = 24 * time.Hour
	MaxAlertWindow = 7 * 24 * time.Hour
	MaxAlertTimes  = 10
	MaxAlertQuiet  = 7 * 24 * time.Hour
	MaxExamples    = 3
	maxThreshold   = 1_000_000_000_000
	maxMailed      = 20 // members
)

// An AlertRule is when a saved search is looked at, and what is told whom.
type AlertRule struct {
	Every     time.Duration // between evaluations
	Window    time.Duration // of each, up to its time
	Fewer     bool          // it fires on fewer entries than Threshold; else on more
	Threshold int64
	Times     int           // how many evaluations in a row it takes to fire
	Quiet     time.Duration // after firing was told, it is not told again for so long
	Examples  int           // messages of entries that are sent along
	Roles     []string      // of members who get mail
	Members   []string      // who get mail as well
}

// Check returns the first fault, an Invalid. It does not know the members.
func (r *AlertRule) Check(roles []string) error {
	switch {
	case !wholeSeconds(r.Every, MinAlertSpan, MaxAlertEvery):
		return Invalid{"every", "That is not how often an alert can be looked at.", "Use 1 minute to 1 day."}
	case !wholeSeconds(r.Window, MinAlertSpan, MaxAlertWindow):
		return Invalid{"window", "That is no time that an alert can look at.", "Use 1 minute to 7 days."}
	case r.Threshold < 0 || r.Threshold > maxThreshold:
		return Invalid{"threshold", fmt.Sprintf("%d is no number of entries.", r.Threshold), "Use 0 or more."}
	case r.Fewer && r.Threshold == 0:
		return Invalid{"threshold", "There are never fewer than 0 entries.", "Use 1 to be told that there are none."}
	case r.Times < 1 || r.Times > MaxAlertTimes:
		return Invalid{"times", fmt.Sprintf("times is %d.", r.Times), fmt.Sprintf("Use 1 to %d.", MaxAlertTimes)}
	case r.Quiet != 0 && !wholeSeconds(r.Quiet, MinAlertSpan, MaxAlertQuiet):
		return Invalid{"quiet", "An alert can't be quiet for that long.", "Use 0, or 1 minute to 7 days."}
	case r.Examples < 0 || r.Examples > MaxExamples:
		return Invalid{"examples", fmt.Sprintf("examples is %d.", r.Examples), fmt.Sprintf("Use 0 to %d.", MaxExamples)}
	case len(r.Members) > maxMailed:
		return Invalid{"mail_members", fmt.Sprintf("There are %d members.", len(r.Members)), fmt.Sprintf("Name at most %d, or roles.", maxMailed)}
	}
	if len(r.Roles) > len(roles) {
		return Invalid{"mail_roles", fmt.Sprintf("There are %d roles.", len(r.Roles)), "Name each once."}
	}
	for _, role := range r.Roles {
		if !slices.Contains(roles, role) {
			return Invalid{"mail_roles", fmt.Sprintf("%q is no role that reads logs.", role), "Use " + strings.Join(roles, ", ") + "."}
		}
	}
	return nil
}

func wholeSeconds(span, least, most time.Duration) bool {
	return span >= least && span <= most && span%time.Second == 0
}

// An AlertState is what the last evaluations say.
type AlertState string

// The states. They are stored, and part of answers and facts.
const (
	AlertOK          AlertState = "ok"
	AlertFiring      AlertState = "firing"
	AlertUnevaluated AlertState = "unevaluated" // it could not be evaluated for long
)

// An Alert is a rule, and what has come of it. Its state moves by Evaluate alone.
type Alert struct {
	AlertRule
	State      AlertState
	Since      time.Time
	Streak     int        // evaluations in a row that met the condition, at most Times
	BlindSince time.Time  // since when none could be evaluated; zero: the last one was
	Told       AlertState // what receivers have heard last
	FiredAt    time.Time  // when they last heard that it fires; zero: never
	MutedUntil time.Time
	Facts      int64 // how many they were sent
}

// NewAlert is an alert that has not been evaluated.
func NewAlert(rule AlertRule, at time.Time) Alert {
	return Alert{AlertRule: rule, State: AlertOK, Told: AlertOK, Since: at}
}

// An Evaluation is what was counted.
type Evaluation struct {
	At      time.Time // the end of the window
	Entries int64
	Part    bool   // there may be more entries than were counted
	Reason  string // why nothing or only a part was counted
}

// A Judgement is what an evaluation says of the condition.
type Judgement string

// The judgements. They are stored, and part of answers.
const (
	Met      Judgement = "met"
	NotMet   Judgement = "not_met"
	Unjudged Judgement = "unknown"
)

// Judge compares a count with the threshold. Of a part it is known that there
// are at least so many.
func (r *AlertRule) Judge(e Evaluation) Judgement {
	reached := e.Entries > r.Threshold
	if r.Fewer {
		reached = e.Entries >= r.Threshold
	}
	switch {
	case e.Part && !reached:
		return Unjudged
	case reached != r.Fewer:
		return Met
	}
	return NotMet
}

// Why what has changed is not told yet.
const (
	HeldMuted = "muted"
	HeldQuiet = "quiet"
)

// An AlertOutcome is what an evaluation has come to.
type AlertOutcome struct {
	Judgement Judgement
	Tell      bool       // the state is told now
	Before    AlertState // what was told before
	Held      string     // why a state is not told that receivers don't know; empty: they know it, or hear it now
}

// Evaluate moves the alert by one evaluation. What is told alternates: it is
// never the same twice in a row.
func (a *Alert) Evaluate(e Evaluation) AlertOutcome {
	outcome := AlertOutcome{Judgement: a.Judge(e), Before: a.Told}
	switch outcome.Judgement {
	case Unjudged:
		if a.BlindSince.IsZero() {
			a.BlindSince = e.At
		}
		if e.At.Sub(a.BlindSince) >= a.patience() {
			a.become(AlertUnevaluated, e.At)
		}
	case Met:
		a.BlindSince, a.Streak = time.Time{}, min(a.Streak+1, a.Times)
		if a.Streak == a.Times {
			a.become(AlertFiring, e.At)
		}
	case NotMet:
		a.BlindSince, a.Streak = time.Time{}, 0
		a.become(AlertOK, e.At)
	}
	if a.State == a.Told {
		return outcome
	}
	if outcome.Held = a.held(e.At); outcome.Held == "" {
		outcome.Tell = true
		a.tell(e.At)
	}
	return outcome
}

func (a *Alert) become(state AlertState, at time.Time) {
	if a.State != state {
		a.State, a.Since = state, at
	}
}

func (a *Alert) held(at time.Time) string {
	switch {
	case at.Before(a.MutedUntil):
		return HeldMuted
	case a.State == AlertFiring && !a.FiredAt.IsZero() && at.Before(a.FiredAt.Add(a.Quiet)):
		return HeldQuiet
	}
	return ""
}

func (a *Alert) tell(at time.Time) {
	a.Told = a.State
	a.Facts++
	if a.State == AlertFiring {
		a.FiredAt = at
	}
}

// leastPatience is how long an alert can't be evaluated before that is told.
const leastPatience = 15 * time.Minute

func (a *Alert) patience() time.Duration { return max(leastPatience, 3*a.Every) }

// Next is when it is evaluated after an evaluation that was due then and took
// place at a time: missed ones are not caught up.
func (r *AlertRule) Next(due, at time.Time) time.Time {
	missed := max(0, at.Sub(due)) / r.Every
	return due.Add((missed + 1) * r.Every)
}

// A Notice is what is told of an alert.
type Notice struct {
	Search   SavedSearch
	Rule     AlertRule
	State    AlertState // that it tells
	Before   AlertState // that was told before
	Number   int64      // of it among those of the alert
	Of       Evaluation
	Examples []string
	Test     bool
}

// From is when the window begins.
func (n *Notice) From() time.Time { return n.Of.At.Add(-n.Rule.Window) }

// Address is the query of the page Logs with the window's entries.
func (n *Notice) Address() url.Values {
	query := n.Search.Address()
	query.Del("last")
	query.Set("from", n.From().Format(time.RFC3339))
	query.Set("to", n.Of.At.Format(time.RFC3339))
	return query
}
