package ledger

import (
	"errors"
	"time"
)

// States of an organization.
const (
	Active    = "active"
	Exhausted = "exhausted"
	Suspended = "suspended"
)

// ErrNoOrganization is the error for an organization that is not in the ledger, or was not at the
// instant asked for.
var ErrNoOrganization = errors.New("no such organization")

// DefaultAnchorDay makes periods calendar months.
const DefaultAnchorDay = 1

// An Organization is a customer. One without a plan is provisional: its logs came before its
// creation. It is charged like any other, without an allowance, and settled when its plan arrives.
type Organization struct {
	ID        string
	AnchorDay int // 1..31
	Plans     Plans
	Suspended bool
}

// Provisional reports whether the ledger has only seen logs of the organization so far.
func (o Organization) Provisional() bool {
	return len(o.Plans) == 0
}

// State is the organization's state while its books of the period are book.
func (o Organization) State(book Book) string {
	switch {
	case o.Suspended:
		return Suspended
	case book.Remaining() == 0 || book.refuses():
		return Exhausted
	}
	return Active
}

// A Plan is the tier that holds from an instant on.
type Plan struct {
	From time.Time
	Tier Tier
}

// Plans are an organization's plans in the order of their instants: its timeline.
type Plans []Plan

// At is the tier in force at t; before the first plan, the first plan's tier.
func (p Plans) At(t time.Time) Tier {
	tier := p[0].Tier
	for _, plan := range p[1:] {
		if plan.From.After(t) {
			break
		}
		tier = plan.Tier
	}
	return tier
}
