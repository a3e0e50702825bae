package ledger

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A Spender has a budget: one project or one API key. The zero Spender
// is the whole organization.
type Spender struct{ Project, Key string }

// String names it in event ids.
func (s Spender) String() string {
	if s.Key != "" {
		return "key:" + s.Key
	}
	return "project:" + s.Project
}

// spentBy reports whether a cause is the spender's.
func (s Spender) spentBy(c Cause) bool {
	if s.Key != "" {
		return s.Key == c.Key
	}
	return s.Project == c.Project
}

// A Budget is how much of each period a project or key may use, and how
// much of the running one it has used. It counts bytes charged to the
// organization and causes no transfer.
type Budget struct {
	Spender
	Bytes   int64 // allowed in each period
	Used    int64 // accepted bytes of the period
	Period  time.Time
	Reached int   // highest announced threshold of the period, in percent
	Refused int64 // largest Bytes that refused a request of the period since the last raise; 0: none
	Since   int64 // number of the decision that created or last raised it
}

// IsExhausted reports whether the period accepts nothing more.
func (b Budget) IsExhausted() bool { return b.Used >= b.Bytes || b.Refused >= b.Bytes }

// Remaining returns what is left in the period, in bytes, never negative.
func (b Budget) Remaining() int64 { return max(0, b.Bytes-b.Used) }

// In returns the budget in the period that begins at an instant.
func (b Budget) In(start time.Time) Budget {
	if start.After(b.Period) {
		b.Period, b.Used, b.Reached, b.Refused = start, 0, 0, 0
	}
	return b
}

// MaxBudgets is the most budgets of an organization: all are published
// with its account.
const MaxBudgets = 100

// maxSpender is the longest id of a project or key.
const maxSpender = 64

// ErrNoBudget is the error for an unknown budget.
var ErrNoBudget = errors.New("no such budget")

// BudgetSet lets a project or key use Bytes of each period. Used is its
// use of the running one so far.
type BudgetSet struct {
	Spender
	Bytes, Used int64
}

// BudgetsChanged removes budgets, and then sets others. What stays as it
// was is no part of it.
type BudgetsChanged struct {
	Set     []BudgetSet
	Removed []Spender
}

// WithBudgets adds the organization's budgets to opened books.
func (b *Books) WithBudgets(budgets []Budget) *Books {
	for _, budget := range budgets {
		b.Budgets = append(b.Budgets, &budget)
	}
	return b
}

// budget finds a spender's budget; nil where there is none.
func (b *Books) budget(of Spender) *Budget {
	for _, budget := range b.Budgets {
		if budget.Spender == of {
			return budget
		}
	}
	return nil
}

// spend counts a charge of the running period in its sender's budgets.
func (b *Books) spend(c Charge) {
	if len(b.Budgets) == 0 {
		return
	}
	start := b.periodAt(c.Cause.At).Start
	for _, budget := range b.Budgets {
		if !budget.spentBy(c.Cause) || start.Before(budget.Period) {
			continue
		}
		b.renew(budget, start, c.Cause)
		wasOut := budget.IsExhausted()
		budget.Used += c.Bytes
		b.announceBudget(budget, wasOut, c.Cause)
	}
}

// renew starts a budget's period, unless it has started.
func (b *Books) renew(budget *Budget, start time.Time, cause Cause) {
	if !start.After(budget.Period) {
		return
	}
	wasOut := budget.IsExhausted()
	*budget = budget.In(start)
	b.announceBudget(budget, wasOut, cause)
}

// renewAll starts a period of all budgets.
func (b *Books) renewAll(start time.Time, cause Cause) {
	for _, budget := range b.Budgets {
		b.renew(budget, start, cause)
	}
}

// announceBudget emits the changes of a budget.
func (b *Books) announceBudget(budget *Budget, wasOut bool, cause Cause) {
	for _, percent := range ThresholdsOf(b.Organization).crossed(budget.Reached, budget.Used, budget.Bytes) {
		budget.Reached = percent
		b.emitBudget(BudgetThresholdReached, budget, percent, cause)
	}
	switch isExhausted := budget.IsExhausted(); {
	case isExhausted && !wasOut:
		b.emitBudget(BudgetExhausted, budget, 0, cause)
	case wasOut && !isExhausted:
		b.emitBudget(BudgetRestored, budget, 0, cause)
	}
}

func (b *Books) emitBudget(kind EventKind, budget *Budget, percent int, cause Cause) {
	b.Events = append(b.Events, Event{
		Kind: kind, Organization: b.Organization.ID, Book: Book{Period: b.periodAt(budget.Period)}, Percent: percent, Cause: cause, Budget: *budget,
	})
}

func (d BudgetsChanged) decide(b *Books, cause Cause) error {
	for _, of := range d.Removed {
		if err := b.removeBudget(of); err != nil {
			return err
		}
	}
	for _, set := range d.Set {
		if err := b.setBudget(set, cause); err != nil {
			return err
		}
	}
	return nil
}

func (b *Books) setBudget(d BudgetSet, cause Cause) error {
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
		wasOut = budget.IsExhausted()
	}
	if d.Bytes > budget.Bytes {
		budget.Refused, budget.Since = 0, cause.Offset
	}
	budget.Bytes, budget.Refused = d.Bytes, min(budget.Refused, d.Bytes) // any raise then counts
	b.announceBudget(budget, wasOut, cause)
	return nil
}

func (b *Books) removeBudget(of Spender) error {
	at := slices.IndexFunc(b.Budgets, func(budget *Budget) bool { return budget.Spender == of })
	if at < 0 {
		return ErrNoBudget
	}
	b.Budgets, b.RemovedBudgets = slices.Delete(b.Budgets, at, at+1), append(b.RemovedBudgets, of)
	b.Organization.Budgets--
	return nil
}

// A BudgetSpec is a requested budget.
type BudgetSpec struct {
	Spender
	Bytes int64
}

// SetBudget decides a budget; nothing if it is unchanged. used is its
// use of the running period.
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
	return []Decision{BudgetsChanged{Set: []BudgetSet{{Spender: spec.Spender, Bytes: spec.Bytes, Used: used}}}}, nil
}

// RemoveBudget decides to remove a budget.
func (b *Books) RemoveBudget(of Spender) ([]Decision, error) {
	if err := of.validate(); err != nil {
		return nil, err
	}
	if b.budget(of) == nil {
		return nil, nil
	}
	return []Decision{BudgetsChanged{Removed: []Spender{of}}}, nil
}

// SetBudgets decides an organization's whole list of budgets; nothing if
// it is unchanged. used are its spenders' uses of the running period, in
// order.
func (b *Books) SetBudgets(specs []BudgetSpec, used []int64) ([]Decision, error) {
	if err := CheckBudgets(specs); err != nil {
		return nil, err
	}
	wanted := make(map[Spender]bool, len(specs))
	var changed BudgetsChanged
	for i, spec := range specs {
		wanted[spec.Spender] = true
		if before := b.budget(spec.Spender); before == nil || before.Bytes != spec.Bytes {
			changed.Set = append(changed.Set, BudgetSet{Spender: spec.Spender, Bytes: spec.Bytes, Used: used[i]})
		}
	}
	for _, budget := range b.Budgets {
		if !wanted[budget.Spender] {
			changed.Removed = append(changed.Removed, budget.Spender)
		}
	}
	if len(changed.Set)+len(changed.Removed) == 0 {
		return nil, nil
	}
	return []Decision{changed}, nil
}

// CheckBudgets refuses invalid budgets before anything is read for them.
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

// CompareSpenders orders projects before keys, each by id.
func CompareSpenders(a, b Spender) int {
	return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Project, b.Project))
}

// refuseBudget records a refusal: the budget is exhausted until it is
// raised or its next period.
func (b *Books) refuseBudget(r *Refusal) {
	budget, start := b.budget(r.Spender), b.periodAt(r.Cause.At).Start
	if budget == nil || start.Before(budget.Period) || !start.Equal(r.PeriodStart) || r.outdated(budget.Since) {
		return
	}
	b.renew(budget, start, r.Cause)
	wasOut := budget.IsExhausted()
	r.Latch = Latch{budget.Since, min(r.Quota, budget.Bytes)}
	budget.Refused = max(budget.Refused, r.Refused)
	b.announceBudget(budget, wasOut, r.Cause)
}
