package ledger

import (
	"fmt"
	"time"
)

// An act is one step of an organization's history.
type act struct {
	kind      actKind
	at        time.Time // when it was decided or accepted; of an advance: through when
	id        string
	bytes     int64
	plan      Plan
	effective string
	grant     Grant
	suspended bool
	of        time.Time
	by        Spender // who sent it, or whose budget it is
	used      int64   // of a budget, when it was set
	percents  []int   // of thresholds
	tiers     Tiers   // the installation's by then
}

type actKind int

const (
	actCharge actKind = iota
	actPlan           // the first
	actSubscribe
	actSuspend
	actGrant
	actVoid
	actAdjust
	actAdvance
	actBudget
	actUnbudget
	actRefuse
	actAnchor
	actThresholds
	actTerms
)

func (a act) rules() Rules { return Rules{Version: 1, Tiers: a.tiers, Thresholds: DefaultThresholds()} }

func (a act) String() string {
	name := [...]string{"charge", "plan", "subscribe", "suspend", "grant", "void", "adjust", "advance", "budget", "unbudget", "refuse", "anchor", "thresholds", "terms"}[a.kind]
	text := fmt.Sprintf("%s %s at %s", name, a.id, a.at.Format(time.RFC3339Nano))
	switch a.kind {
	case actPlan, actSubscribe:
		text += fmt.Sprintf(" %+v %s", a.plan, a.effective)
	case actGrant:
		text += fmt.Sprintf(" %+v", a.grant)
	case actTerms:
		text += fmt.Sprintf(" %+v", a.tiers)
	case actSuspend:
		text += fmt.Sprint(" ", a.suspended)
	case actCharge, actAdjust, actBudget, actUnbudget, actRefuse, actAnchor:
		text += fmt.Sprint(" ", a.bytes, " ", a.by)
	}
	return text
}
