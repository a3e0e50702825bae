package ledger

import "time"

// An AccountState is what other services need of an organization's books.
type AccountState struct {
	Organization      Organization
	Book              Book // of the latest period
	Tier              Tier
	State             string
	RequestsPerMinute int
	RetentionDays     int      // of new logs
	Overage           int64    // most overage of a period
	NextQuota         int64    // of the next period's plan, without grants
	NextOverage       int64    // in that period
	Version           int64    // grows with every change
	Budgets           []Budget // as they are in Book's period
}

// NewAccountState returns the state of an organization at an instant.
func NewAccountState(o Organization, book Book, budgets []Budget, version int64, at time.Time) AccountState {
	at = o.Now(at)
	plan, next := o.Plans.At(at), o.Plans.At(book.Period.End)
	terms := plan.Terms()
	state := AccountState{
		Organization: o, Book: book, Tier: plan.Tier, State: o.State(book, at), RequestsPerMinute: terms.RequestsPerMinute,
		RetentionDays: terms.RetentionDays, Overage: plan.overageAllowed(),
		NextQuota: o.share(next.Terms().Quota, o.PeriodAt(book.Period.End)), NextOverage: next.overageAllowed(), Version: version,
	}
	if o.IsTest() {
		state.State = Suspended // none is accepted
	}
	for _, budget := range budgets {
		state.Budgets = append(state.Budgets, budget.In(book.Period.Start))
	}
	return state
}
