package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Spender is who has a budget: one project, or one API key. The zero
// Spender is the organization as a whole.
type Spender struct{ Project, Key string }

// String names it in ids of events.
func (s Spender) String() string {
	if s.Key != "" {
		return "key:" + s.Key
	}
	return "project:" + s.Project
}

// sent reports whether what a cause is about was sent by the spender.
func (s Spender) sent(c Cause) bool {
	if s.Key != "" {
		return s.Key == c.Key
	}
	return s.Project == c.Project
}

// A Budget is how much of each period a project or key may use, and what
// it has used of the running one. It counts bytes charged to the
// organization; no transfer moves by it.
type Budget struct {
	Spender
	Bytes   int64 // that may be used in a period
	Used    int64 // charged of what was accepted in the period
	Period  time.Time
	Reached int   // the highest threshold already announced in the period, in percent
	Refused int64 // the largest Bytes that did not cover a request in the period since the last raise; 0: none
	Since   int64 // number of the decision with which it began, or was last raised
}

// IsOut reports whether nothing more is accepted in the period.
func (b Budget) IsOut() bool { return b.Used >= b.Bytes || b.Refused >= b.Bytes }

// Remaining is what is left in the period, in bytes, never below zero.
func (b Budget) Remaining() int64 { return max(0, b.Bytes-b.Used) }

// In is the budget as it is in the period that begins at an instant.
func (b Budget) In(start time.Time) Budget {
	if start.After(b.Period) {
		b.Period, b.Used, b.Reached, b.Refused = start, 0, 0, 0
	}
	return b
}

// MaxBudgets is how many budgets an organization may have: all
// of them are published with its account.
const MaxBudgets = 100

// maxSpender is how long the id of a project or key may be.
const maxSpender = 64

// ErrNoBudget is the error for a budget that the organization does not have.
var ErrNoBudget = errors.New("no such budget")

// BudgetSet lets a project or key use Bytes of each period. Used
// is what it had used of the running one.
type BudgetSet struct {
	Spender
	Bytes, Used int64
}

// BudgetRemoved says that a project or key has no budget of its own any more.
type BudgetRemoved struct{ Spender }

// WithBudgets gives opened books the organization's budgets.
func (b *Books) WithBudgets(budgets []Budget) *Books {
	for _, budget := range budgets {
		b.Budgets = append(b.Budgets, &budget)
	}
	return b
}

// budget finds a spender's; nil where there is none.
func (b *Books) budget(of Spender) *Budget {
	for _, budget := range b.Budgets {
		if budget.Spender == of {
			return budget
		}
	}
	return nil
}

// spend counts a charge of the running period in the budgets of its sender.
func (b *Books) spend(c Charge) {
	if len(b.Budgets) == 0 {
		return
	}
	start := b.periodAt(c.Cause.At).Start
	for _, budget := range b.Budgets {
		if !budget.sent(c.Cause) || start.Before(budget.Period) {
			continue
		}
		b.renew(budget, start, c.Cause)
		wasOut := budget.IsOut()
		budget.Used += c.Bytes
		b.announceBudget(budget, wasOut, c.Cause)
	}
}

// renew begins a period of a budget, unless that has begun.
func (b *Books) renew(budget *Budget, start time.Time, cause Cause) {
	if !start.After(budget.Period) {
		return
	}
	wasOut := budget.IsOut()
	*budget = budget.In(start)
	b.announceBudget(budget, wasOut, cause)
}

// renewAll begins a period of all budgets.
func (b *Books) renewAll(start time.Time, cause Cause) {
	for _, budget := range b.Budgets {
		b.renew(budget, start, cause)
	}
}

// announceBudget notes what became true of a budget.
func (b *Books) announceBudget(budget *Budget, wasOut bool, cause Cause) {
	for _, percent := range b.thresholds().crossed(budget.Reached, budget.Used, budget.Bytes) {
		budget.Reached = percent
		b.emitBudget(BudgetThresholdReached, budget, percent, cause)
	}
	switch isOut := budget.IsOut(); {
	case isOut && !wasOut:
		b.emitBudget(BudgetExhausted, budget, 0, cause)
	case wasOut && !isOut:
		b.emitBudget(BudgetRestored, budget, 0, cause)
	}
}

func (b *Books) emitBudget(kind EventKind, budget *Budget, percent int, cause Cause) {
	b.Events = append(b.Events, Event{
		Kind: kind, Organization: b.Organization.ID, Book: Book{Period: b.periodAt(budget.Period)}, Percent: percent, Cause: cause, Budget: *budget,
	})
}

func (d BudgetSet) decide(b *Books, cause Cause) error {
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	budget, wasOut := b.budget(d.Spender), false
	if budget == nil {
		budget = &Budget{Spender: d.Spender, Used: d.Used, Period: book.Period.Start, Since: cause.Offset}
		b.Budgets = append(b.Budgets, budget)
		b.Organization.Budgets++
	} else {
		b.renew(budget, book.Period.Start, cause)
		wasOut = budget.IsOut()
	}
	if d.Bytes > budget.Bytes {
		budget.Refused, budget.Since = 0, cause.Offset
	}
	budget.Bytes, budget.Refused = d.Bytes, min(budget.Refused, d.Bytes) // so that any raise counts as one
	b.announceBudget(budget, wasOut, cause)
	return nil
}

func (d BudgetRemoved) decide(b *Books, _ Cause) error {
	at := slices.IndexFunc(b.Budgets, func(budget *Budget) bool { return budget.Spender == d.Spender })
	if at < 0 {
		return ErrNoBudget
	}
	b.Budgets, b.Unbudgeted = slices.Delete(b.Budgets, at, at+1), append(b.Unbudgeted, d.Spender)
	b.Organization.Budgets--
	return nil
}

// A BudgetSpec is a budget that somebody wants a project or key to have.
type BudgetSpec struct {
	Spender
	Bytes int64
}

// SetBudget decides that a project or key has a budget: nothing where it has
// that one. used is what it has used of the running period.
func (b *Books) SetBudget(spec BudgetSpec, used int64) ([]Decision, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	before := b.budget(spec.Spender)
	switch {
	case before != nil && before.Bytes == spec.Bytes:
		return nil, nil
	case before == nil && len(b.Budgets) >= MaxBudgets:
		return nil, tooManyBudgets
	}
	return []Decision{BudgetSet{Spender: spec.Spender, Bytes: spec.Bytes, Used: used}}, nil
}

// RemoveBudget is what has to be decided for a project or key to have no budget.
func (b *Books) RemoveBudget(of Spender) ([]Decision, error) {
	if err := of.validate(); err != nil {
		return nil, err
	}
	if b.budget(of) == nil {
		return nil, nil
	}
	return []Decision{BudgetRemoved{of}}, nil
}

// SetBudgets decides that an organization has these budgets alone. used is what
// their spenders have used of the running period, in their order.
func (b *Books) SetBudgets(specs []BudgetSpec, used []int64) (decisions []Decision, err error) {
	if err := CheckBudgets(specs); err != nil {
		return nil, err
	}
	wanted := make(map[Spender]bool, len(specs))
	var set []Decision
	for i, spec := range specs {
		wanted[spec.Spender] = true
		if before := b.budget(spec.Spender); before == nil || before.Bytes != spec.Bytes {
			set = append(set, BudgetSet{Spender: spec.Spender, Bytes: spec.Bytes, Used: used[i]})
		}
	}
	for _, budget := range b.Budgets {
		if !wanted[budget.Spender] {
			decisions = append(decisions, BudgetRemoved{budget.Spender})
		}
	}
	return append(decisions, set...), nil
}

// CheckBudgets refuses what no organization can have, before
// anything is read for it.
func CheckBudgets(specs []BudgetSpec) error {
	if len(specs) > MaxBudgets {
		return tooManyBudgets
	}
	wanted := make(map[Spender]bool, len(specs))
	for _, spec := range specs {
		if err := spec.validate(); err != nil {
			return err
		}
		if wanted[spec.Spender] {
			return Invalid{"", fmt.Sprintf("There are two budgets of %s.", spec.Spender), "Send each project and each key once."}
		}
		wanted[spec.Spender] = true
	}
	return nil
}

func (w BudgetSpec) validate() error {
	if err := w.Spender.validate(); err != nil {
		return err
	}
	if w.Bytes < 1 || w.Bytes > MaxGrant {
		return Invalid{"bytes", fmt.Sprintf("The budget is %d bytes.", w.Bytes), fmt.Sprintf("Use a whole number from 1 to %d.", MaxGrant)}
	}
	return nil
}

func (s Spender) validate() error {
	if (s.Project == "") == (s.Key == "") {
		return Invalid{"project", "A budget is of one project or of one key.", "Name either project or key."}
	}
	id, field := s.Project, "project"
	if s.Key != "" {
		id, field = s.Key, "key"
	}
	if len(id) > maxSpender || !isURLSafe(id) {
		return Invalid{field, fmt.Sprintf("%q is not an id.", id), "Use the id that the API shows."}
	}
	return nil
}

func isURLSafe(id string) bool {
	for _, r := range id {
		if (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' {
			return false
		}
	}
	return true
}

// CompareSpenders puts projects before keys, each by their ids.
func CompareSpenders(a, b Spender) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Project, b.Project))
}

// refuseBudget notes that a budget did not cover a request: it is exhausted
// until it is larger, or its next period.
func (b *Books) refuseBudget(r Refusal) {
	budget, start := b.budget(r.Spender), b.periodAt(r.Cause.At).Start
	if budget == nil || start.Before(budget.Period) || !start.Equal(r.PeriodStart) || r.outdated(budget.Since) {
		return
	}
	b.renew(budget, start, r.Cause)
	wasOut := budget.IsOut()
	budget.Refused = max(budget.Refused, min(r.Quota, budget.Bytes))
	b.announceBudget(budget, wasOut, r.Cause)
}
