package contract

import "slices"

// A Pushed fact is one that organizations can have sent to them. Its data is that of the event.
type Pushed struct {
	Type  string // of the event
	Name  string // the type that receivers see; never renamed
	Means string // as it goes on after "when"
}

// PushedFacts lists all of them: a new fact is pushed once it has a line here. PushingTopics have them.
func PushedFacts() []Pushed {
	return []Pushed{
		{TypeThresholdReached, "quota.threshold_reached", "a part of the period's quota is used"},
		{TypeQuotaExhausted, "quota.exhausted", "nothing is left of the period's quota"},
		{TypeQuotaRestored, "quota.restored", "what was exhausted is so no more"},
		{TypeOverageBegun, "quota.overage_begun", "more than the period's quota is used, which the plan accepts"},
		{TypeTierChanged, "subscription.tier_changed", "another tier is in force"},
		{TypeGrantExpiring, "grant.expiring", "a grant expires in a week"},
		{TypeGrantExpired, "grant.expired", "a grant has expired"},
		{TypePeriodClosed, "period.closed", "a period is closed"},
		{TypeAdjusted, "quota.adjusted", "what was charged is made good in the running period"},
		{TypeStatementReady, "statement.ready", "the statement of a closed period can be read"},
		{TypeBudgetThresholdReached, "budget.threshold_reached", "a part of the budget of a project or key is used"},
		{TypeBudgetExhausted, "budget.exhausted", "nothing is left of the budget of a project or key"},
		{TypeBudgetRestored, "budget.restored", "a budget that was exhausted is so no more"},
		{TypeErrorGroupCreated, "error_group.created", "an error of a new kind is seen"},
	}
}

// PushedAs finds the fact that an event of a type is pushed as.
func PushedAs(eventType string) (fact Pushed, found bool) {
	facts := PushedFacts()
	i := slices.IndexFunc(facts, func(p Pushed) bool { return p.Type == eventType })
	if i < 0 {
		return Pushed{}, false
	}
	return facts[i], true
}

// PushingTopics are those that have pushed facts.
func PushingTopics() []string { return []string{TopicLedger, TopicGrouping} }
