package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// ErrNoStatement is the error for a statement that the organization does not have.
var ErrNoStatement = errors.New("no such statement")

// A Statement is what a closed period came to. It is made once
// and never changes. Sizes are bytes.
type Statement struct {
	Organization string
	Number       int64 // 1 for the organization's first, and so on without a gap
	Test         bool  // billing only rehearses with the organization: nobody owes anything by it
	Period       calendar.Period
	Made         time.Time
	Tier         Tier  // at the period's end
	Quota        int64 // of the plan of then
	Totals       Totals
	Grants       []GrantMovement
	ChargedBy    []string // what charges are split by, beside days
	Charges      []DayCharge
	Late         []LateCharge
	Adjustments  []AdjustmentEntry
}

// Totals are the sums of a statement: Opening + Allowance + Prorated + Granted
// = Consumed + Expired + Voided + Closing.
type Totals struct {
	Opening   int64 // left of grants when the period began
	Allowance int64 // of the plan
	Prorated  int64 // of a larger plan, for the rest of the period
	Granted   int64 // by grants that began
	Consumed  int64 // and covered
	Overage   int64 // used, and covered by nothing
	Expired   int64
	Voided    int64
	Closing   int64 // left of grants at the end; below zero where it used one that was given later for the time before
}

// A GrantMovement is what became of a grant in a period.
type GrantMovement struct {
	Grant                                           string
	Opening, Issued, Used, Expired, Voided, Closing int64
}

// A DayCharge is what was charged of what was accepted on a day (UTC).
type DayCharge struct {
	Day         time.Time
	Project     string // empty, like Environment: of any
	Environment string
	Requests    int64
	Entries     int64
	Bytes       int64
}

// A LateCharge is what was accepted in a period that was closed,
// and came after that.
type LateCharge struct {
	Of    time.Time // when that period began
	Bytes int64
}

// An AdjustmentEntry is an adjustment: what was given back, or below zero charged.
type AdjustmentEntry struct {
	ID    string
	Of    time.Time // start of the period that was wrong
	Bytes int64
}

// Sources are what a statement is made of, beside the books.
type Sources struct {
	Lines     []Line  // of the period and later ones
	Grants    []Grant // as they are now
	Charges   []Use   // by day
	ChargedBy []string
}

// Statement makes the statement of a period that has just closed; made is false
// where lines are kept since later than its beginning.
func (b *Books) Statement(number int64, closed Event, from Sources, at time.Time) (s Statement, made bool, err error) {
	period := closed.Book.Period
	plan := b.Organization.Plans.At(period.End.Add(-instant))
	terms, err := plan.Terms(b.tiers)
	if err != nil {
		return s, false, err
	}
	s = Statement{
		Organization: b.Organization.ID, Number: number, Test: b.Organization.IsTest(), Period: period, Made: b.Organization.Now(at),
		Tier: plan.Tier, Quota: terms.Quota, ChargedBy: from.ChargedBy, Grants: movements(from, period.Start),
		Totals: totals(closed.Book.Balances, b.carriedOver(period.End)),
	}
	s.charge(from.Charges)
	known := s.enter(from.Lines)
	return s, known, nil
}

// carriedOver is what was left of grants at the end of a period.
func (b *Books) carriedOver(end time.Time) int64 {
	left := b.Organization.Pool
	for _, book := range b.books {
		if !book.Period.Start.Before(end) {
			left -= book.Balances[Credit]
		}
	}
	return left
}

func totals(balances Balances, closing int64) Totals {
	return Totals{
		Opening: closing - balances[Credit], Consumed: balances[Consumed], Overage: balances[Overage],
		Expired: balances[Expired], Voided: balances[Voided], Closing: closing,
	}
}

func (s *Statement) charge(uses []Use) {
	for _, u := range uses {
		s.Charges = append(s.Charges, DayCharge{u.Hour, u.Project, u.Environment, u.Requests, u.Entries, u.Bytes})
	}
	slices.Reverse(s.Charges) // usage has the latest first
}

// enter adds the lines of the period; known is false where they
// do not have its beginning.
func (s *Statement) enter(lines []Line) (known bool) {
	for _, l := range lines {
		if !l.Start.Equal(s.Period.Start) {
			continue
		}
		switch l.Kind {
		case AllowanceIssued:
			known = true
			s.Totals.Allowance += l.Bytes
		case AllowanceProrated:
			s.Totals.Prorated += l.Bytes
		case GrantIssued:
			s.Totals.Granted += l.Bytes
		case ChargedLate:
			s.Late = append(s.Late, LateCharge{l.Of, l.Bytes})
		case AdjustmentMade:
			s.Adjustments = append(s.Adjustments, AdjustmentEntry{l.Subject, l.Of, l.Bytes})
		}
	}
	return known
}

// movements are what became of grants in the period that began at
// start, in their order. What each had left then follows from
// what it has now and what happened since.
func movements(from Sources, start time.Time) (all []GrantMovement) {
	in, since := map[string]*GrantMovement{}, map[string]int64{}
	for _, l := range from.Lines {
		if l.Start.After(start) {
			since[l.Subject] += l.grown()
			continue
		}
		if in[l.Subject] == nil {
			in[l.Subject] = &GrantMovement{}
		}
		in[l.Subject].add(l)
	}
	for _, g := range from.Grants {
		m := GrantMovement{Grant: g.ID, Closing: g.Remaining - since[g.ID]}
		if moved := in[g.ID]; moved != nil {
			m.Issued, m.Used, m.Expired, m.Voided = moved.Issued, moved.Used, moved.Expired, moved.Voided
		}
		m.Opening = m.Closing - m.Issued + m.Used + m.Expired + m.Voided
		if m != (GrantMovement{Grant: g.ID}) {
			all = append(all, m)
		}
	}
	return all
}

func (m *GrantMovement) add(l Line) {
	switch l.Kind {
	case GrantIssued:
		m.Issued += l.Bytes
	case GrantUsed:
		m.Used += l.Bytes
	case GrantLapsed:
		m.Expired += l.Bytes
	case GrantTakenBack:
		m.Voided += l.Bytes
	}
}

// grown is by how much a line made grow what is left of its grant.
func (l Line) grown() int64 {
	switch l.Kind {
	case GrantIssued:
		return l.Bytes
	case GrantUsed, GrantLapsed, GrantTakenBack:
		return -l.Bytes
	}
	return 0
}

// Ready is the event that the statement of a closed period is there.
func (s Statement) Ready(closed Event) Event {
	cause := closed.Cause
	cause.At = s.Made
	return Event{Kind: StatementReady, Organization: s.Organization, Book: closed.Book, Cause: cause, Number: s.Number}
}

// Check returns how the parts of a statement contradict each other.
func (s Statement) Check() error {
	t := s.Totals
	if in, out := t.Opening+t.Allowance+t.Prorated+t.Granted, t.Consumed+t.Expired+t.Voided+t.Closing; in != out {
		return fmt.Errorf("statement %d of organization %q: %d bytes came, and %d are accounted for", s.Number, s.Organization, in, out)
	}
	if charged, used := s.Charged(), t.Consumed+t.Overage; charged != used {
		return fmt.Errorf("statement %d of organization %q: %d bytes were charged, and %d used", s.Number, s.Organization, charged, used)
	}
	left := t.Closing
	for _, g := range s.Grants {
		left -= g.Closing
	}
	if left != 0 {
		return fmt.Errorf("statement %d of organization %q: grants have %d bytes less left than the period", s.Number, s.Organization, left)
	}
	return nil
}

// Charged is what was charged in the period: of its own days,
// late, and by adjustments.
func (s Statement) Charged() (bytes int64) {
	for _, c := range s.Charges {
		bytes += c.Bytes
	}
	for _, l := range s.Late {
		bytes += l.Bytes
	}
	for _, a := range s.Adjustments {
		bytes += max(0, -a.Bytes)
	}
	return bytes
}
