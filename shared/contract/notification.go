package contract

import "slices"

// A Notification is a fact that organizations can receive by webhook or
// mail. Its data is that of the event.
type Notification struct {
	Type  string // of the event
	Name  string // the type that receivers see; never renamed
	Means string // completes "when …"
}

// Notifications lists all of them: a fact without a line here is not
// sent. They are on NotificationTopics.
func Notifications() []Notification {
	return []Notification{
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

// NotificationOf finds the notification of an event type.
func NotificationOf(eventType string) (fact Notification, found bool) {
	facts := Notifications()
	i := slices.IndexFunc(facts, func(p Notification) bool { return p.Type == eventType })
	if i < 0 {
		return Notification{}, false
	}
	return facts[i], true
}

// NotificationTopics returns the topics with notifications.
func NotificationTopics() []string { return []string{TopicLedger, TopicGrouping} }
