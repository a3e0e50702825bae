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
