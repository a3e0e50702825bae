package grouping

import "time"

// MaxListed is how many groups a message names. It counts the others.
const MaxListed = 10

// staleNotice is how old an error may be that is told: who reads the log
// again must not be told of last month's.
const staleNotice = 24 * time.Hour

// An Outcome is what became of something to be told. Outcomes are stored and
// shown, so they are never renamed.
type Outcome string

// The outcomes.
const (
	WasSent      Outcome = "sent"
	WasTested    Outcome = "tested"
	HeldMuted    Outcome = "muted"
	HeldBelow    Outcome = "below"       // the group had fewer errors than the rule wants
	HeldGathered Outcome = "gathered"    // it waits for the next message, as one was sent not long before
	HeldHours    Outcome = "after_hours" // it waits for the hours of the rule
	HeldBound    Outcome = "over_limit"  // it waits, as the organization was sent as many messages as may be
	HeldStale    Outcome = "stale"       // the error came more than a day ago
	HeldDecided  Outcome = "decided"     // somebody resolved or ignored it meanwhile, or it is gone
)

// Outcomes lists all of them.
func Outcomes() []Outcome {
	return []Outcome{WasSent, WasTested, HeldMuted, HeldBelow, HeldGathered, HeldHours, HeldBound, HeldStale, HeldDecided}
}

// An AlertLine is a line of an alert's log. The next of the same outcome,
// unless that was sent, adds to it.
type AlertLine struct {
	Outcome Outcome
	Groups  int64
	Group   string // the first one; empty: none is known
}

// An ErrorAlert is a rule, and what waits to be told by it.
type ErrorAlert struct {
	AlertRule
	Since time.Time // it holds for errors accepted then and later
	Waiting
}

// Waiting is what waits to be told.
type Waiting struct {
	Listed []Notice  `json:"listed,omitempty"` // at most MaxListed
	More   int64     `json:"more,omitempty"`   // beyond them
	SentAt time.Time `json:"sent_at,omitzero"` // the last message
	Due    time.Time `json:"due,omitzero"`     // when the next one is sent; zero: nothing waits
	Hour   time.Time `json:"hour,omitzero"`    // of the last message
	Sent   int64     `json:"sent,omitempty"`   // messages in that hour
}

// Take takes notices in, and returns what became of those that are not told
// at once.
func (a *ErrorAlert) Take(notices []Notice, now time.Time) (lines []AlertLine) {
	planned, waits := false, Outcome("")
	for _, n := range notices {
		held := a.refuses(n, now)
		if held == "" {
			a.keep(n)
			if !planned {
				planned, waits = true, a.plan(now)
			}
			held = waits
		}
		lines = addLine(lines, held, n.Group)
	}
	return lines
}

func addLine(lines []AlertLine, outcome Outcome, group string) []AlertLine {
	if outcome == "" {
		return lines
	}
	if n := len(lines); n > 0 && lines[n-1].Outcome == outcome {
		lines[n-1].Groups++
		return lines
	}
	return append(lines, AlertLine{outcome, 1, group})
}

func (a *ErrorAlert) refuses(n Notice, now time.Time) Outcome {
	switch {
	case n.Below:
		return HeldBelow
	case n.At.Before(a.MutedUntil):
		return HeldMuted
	case now.Sub(n.At) > staleNotice:
		return HeldStale
	}
	return ""
}

func (a *ErrorAlert) keep(n Notice) {
	listed := false
	for i, known := range a.Listed {
		if known.Group == n.Group && known.Trigger == n.Trigger {
			a.Listed[i] = n
			return
		}
		listed = listed || known.Group == n.Group
	}
	switch {
	case len(a.Listed) < MaxListed:
		a.Listed = append(a.Listed, n)
	case !listed:
		a.More++
	}
}

// Groups is how many groups wait, each once however many triggers have it.
func (w *Waiting) Groups() int64 {
	listed := map[string]bool{} // bounded by MaxListed
	for _, n := range w.Listed {
		listed[n.Group] = true
	}
	return int64(len(listed)) + w.More
}

// plan sets when the next message is sent, and returns why that is not now.
func (a *ErrorAlert) plan(now time.Time) Outcome {
	soonest := now
	if next := a.SentAt.Add(a.Gap); next.After(now) {
		soonest = now.Add(min(next.Sub(now), a.Gap)) // the clock may have been ahead
	}
	opens := a.Hours.Next(soonest)
	if a.Due.IsZero() {
		a.Due = opens
	}
	switch {
	case !a.Due.After(now):
		return ""
	case opens.After(soonest):
		return HeldHours
	}
	return HeldGathered
}

// Change replaces the rule. What waits is told by the new one, or not at all
// if that is muted.
func (a *ErrorAlert) Change(rule AlertRule, now time.Time) (lines []AlertLine) {
	if !a.Selects(&rule) {
		a.Since = now
	}
	a.AlertRule = rule
	if now.Before(a.MutedUntil) {
		return a.drop(HeldMuted)
	}
	if !a.Due.IsZero() {
		a.Due = time.Time{}
		a.plan(now)
	}
	return nil
}

func (a *ErrorAlert) drop(outcome Outcome) (lines []AlertLine) {
	if waiting := a.Groups(); waiting > 0 {
		lines = []AlertLine{{outcome, waiting, a.first()}}
	}
	a.Listed, a.More, a.Due = nil, 0, time.Time{}
	return lines
}

func (a *ErrorAlert) first() string {
	if len(a.Listed) == 0 {
		return ""
	}
	return a.Listed[0].Group
}

// overLimitWait is how long an alert waits when its organization has been sent as
// many messages as may be.
const overLimitWait = 10 * time.Minute

// Send returns what is sent now, of the groups that are worth it still, if
// the organization has room for a message.
func (a *ErrorAlert) Send(now time.Time, room bool, worth func(group string) bool) (sent Waiting, lines []AlertLine) {
	later, why := a.Hours.Next(now), HeldHours
	if !room {
		later, why = a.Hours.Next(now.Add(overLimitWait)), HeldBound
	}
	if later.After(now) {
		a.Due = later
		return sent, []AlertLine{{why, a.Groups(), a.first()}}
	}
	var kept []Notice
	for _, n := range a.Listed {
		if worth(n.Group) {
			kept = append(kept, n)
		} else {
			lines = addLine(lines, HeldDecided, n.Group)
		}
	}
	if a.Listed = kept; len(kept) == 0 {
		return Waiting{}, append(lines, a.drop(HeldDecided)...)
	}
	sent = Waiting{Listed: kept, More: a.More}
	if told := a.drop(WasSent); told != nil {
		lines, a.SentAt = append(lines, told...), now
		if hour := now.Truncate(time.Hour); !hour.Equal(a.Hour) {
			a.Hour, a.Sent = hour, 0
		}
		a.Sent++
	}
	return sent, lines
}
