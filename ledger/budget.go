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
		b.Budgets.Kept = append(b.Budgets.Kept, &budget)
	}
	return b
}

// Budgets are an organization's, opened to write to.
type Budgets struct {
	Kept    []*Budget
	Removed []Spender // whose budgets were removed
}

// find finds a spender's budget; nil where there is none.
func (b Budgets) find(of Spender) *Budget {
	for _, budget := range b.Kept {
		if budget.Spender == of {
			return budget
		}
	}
	return nil
}

func (b *Budgets) drop(of Spender) error {
	at := slices.IndexFunc(b.Kept, func(budget *Budget) bool { return budget.Spender == of })
	if at < 0 {
		return ErrNoBudget
	}
	b.Kept, b.Removed = slices.Delete(b.Kept, at, at+1), append(b.Removed, of)
	return nil
}

// spend counts a charge of the running period in its sender's budgets.
func (b *Books) spend(c Charge) {
	if len(b.Budgets.Kept) == 0 {
		return
	}
	start := b.Organization.PeriodAt(c.Cause.At).Start
	for _, budget := range b.Budgets.Kept {
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

// announceBudget emits the changes of a budget.
func (b *Books) announceBudget(budget *Budget, wasOut bool, cause Cause) {
	for _, percent := range ThresholdsOf(b.Organization).crossed(budget.Reached, budget.Used, budget.Bytes) {
		budget.Reached = percent
		b.Events = append(b.Events, budget.event(BudgetThresholdReached, b.Organization, percent, cause))
	}
	switch isExhausted := budget.IsExhausted(); {
	case isExhausted && !wasOut:
		b.Events = append(b.Events, budget.event(BudgetExhausted, b.Organization, 0, cause))
	case wasOut && !isExhausted:
		b.Events = append(b.Events, budget.event(BudgetRestored, b.Organization, 0, cause))
	}
}

// event returns an event about the budget of an organization.
func (b Budget) event(kind EventKind, o Organization, percent int, cause Cause) Event {
	return Event{Kind: kind, Organization: o.ID, Book: Book{Period: o.PeriodAt(b.Period)}, Percent: percent, Cause: cause, Budget: b}
}

func (d BudgetsChanged) decide(b *Books, cause Cause) error {
	for _, of := range d.Removed {
		if err := b.Budgets.drop(of); err != nil {
			return err
		}
		b.Organization.Budgets--
	}
	for _, set := range d.Set {
		if err := set.apply(b, cause); err != nil {
			return err
		}
	}
	return nil
}

func (d BudgetSet) apply(b *Books, cause Cause) error {
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	budget, wasOut := b.Budgets.find(d.Spender), false
	if budget == nil {
		budget = &Budget{Spender: d.Spender, Used: d.Used, Period: book.Period.Start, Since: cause.Offset}
		b.Budgets.Kept = append(b.Budgets.Kept, budget)
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

// A BudgetSpec is a requested budget.
type BudgetSpec struct {
	Spender
	Bytes int64
}

// Set decides a budget; nothing if it is unchanged. used is its
// use of the running period.
func (b Budgets) Set(spec BudgetSpec, used int64) ([]Decision, error) {
	if err := spec.validate(); err != nil {
		return nil, err
	}
	before := b.find(spec.Spender)
	switch {
	case before != nil && before.Bytes == spec.Bytes:
		return nil, nil
	case before == nil && len(b.Kept) >= MaxBudgets:
		return nil, tooManyBudgets
	}
	return []Decision{BudgetsChanged{Set: []BudgetSet{{Spender: spec.Spender, Bytes: spec.Bytes, Used: used}}}}, nil
}

// Remove decides to remove a budget.
func (b Budgets) Remove(of Spender) ([]Decision, error) {
	if err := of.validate(); err != nil {
		return nil, err
	}
	if b.find(of) == nil {
		return nil, nil
	}
	return []Decision{BudgetsChanged{Removed: []Spender{of}}}, nil
}

// SetAll decides an organization's whole list of budgets; nothing if
// it is unchanged. used are its spenders' uses of the running period, in
// order.
func (b Budgets) SetAll(specs []BudgetSpec, used []int64) ([]Decision, error) {
	if err := CheckBudgets(specs); err != nil {
		return nil, err
	}
	wanted := make(map[Spender]bool, len(specs))
	var changed BudgetsChanged
	for i, spec := range specs {
		wanted[spec.Spender] = true
		if before := b.find(spec.Spender); before == nil || before.Bytes != spec.Bytes {
			changed.Set = append(changed.Set, BudgetSet{Spender: spec.Spender, Bytes: spec.Bytes, Used: used[i]})
		}
	}
	for _, budget := range b.Kept {
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

// exhaustBudget records a refusal: the budget is exhausted until it is
// raised or its next period.
func (r *Refusal) exhaustBudget(b *Books) {
	budget, start := b.Budgets.find(r.Spender), b.Organization.PeriodAt(r.Cause.At).Start
	if budget == nil || start.Before(budget.Period) || !start.Equal(r.PeriodStart) || r.outdated(budget.Since) {
		return
	}
	b.renew(budget, start, r.Cause)
	wasOut := budget.IsExhausted()
	r.Latch = Latch{budget.Since, min(r.Quota, budget.Bytes)}
	budget.Refused = max(budget.Refused, r.Refused)
	b.announceBudget(budget, wasOut, r.Cause)
}
