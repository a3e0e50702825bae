package contract

import (
	"slices"
	"time"
)

// ThresholdReached is a fact on weir.ledger.v1: once per
// organization, period and threshold.
type ThresholdReached struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	Percent      int       `json:"percent"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	Batch        string    `json:"batch"`          // the batch that crossed it
	At           time.Time `json:"at"`             // when that batch was accepted
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// QuotaExhausted is a fact on weir.ledger.v1: nothing remains of the
// period's quota, nor of its accepted overage.
type QuotaExhausted struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// QuotaRestored is a fact on weir.ledger.v1: an exhausted quota is
// usable again, by a grant, another plan or the next period.
type QuotaRestored struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// OverageBegun is a fact on weir.ledger.v1: usage exceeds the quota
// from now on, which the plan accepts.
type OverageBegun struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Quota        int64     `json:"quota"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// TierChanged is a fact on weir.ledger.v1: another tier is in force.
type TierChanged struct {
	Organization string    `json:"organization"`
	Before       string    `json:"before"`
	Tier         string    `json:"tier"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// GrantExpiring is a fact on weir.ledger.v1: the rest of a grant
// expires in a week.
type GrantExpiring struct {
	Organization string    `json:"organization"`
	Grant        string    `json:"grant"`
	Remaining    int64     `json:"remaining"`
	ExpiresAt    time.Time `json:"expires_at"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// GrantExpired is a fact on weir.ledger.v1: a grant has ended, with its rest.
type GrantExpired struct {
	Organization string    `json:"organization"`
	Grant        string    `json:"grant"`
	Expired      int64     `json:"expired"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// PeriodClosed is a fact on weir.ledger.v1: nothing more is booked in a
// period; these are its totals.
type PeriodClosed struct {
	Organization string    `json:"organization"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Granted      int64     `json:"granted"`
	Consumed     int64     `json:"consumed"` // of what was granted
	Overage      int64     `json:"overage"`
	Expired      int64     `json:"expired"`
	Voided       int64     `json:"voided"`
	Overshoot    int64     `json:"overshoot"` // accepted beyond what the plan allows, which nobody owes
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// Adjusted is a fact on weir.ledger.v1: a charge is corrected in an
// open period, by a person's decision or because entries came after
// their period was closed.
type Adjusted struct {
	Organization  string     `json:"organization"`
	Adjustment    string     `json:"adjustment"`                // its id, or the late event's
	Bytes         int64      `json:"bytes"`                     // given back, or below zero charged
	PeriodStart   time.Time  `json:"period_start"`              // where it is booked
	OfPeriodStart *time.Time `json:"of_period_start,omitempty"` // the period that was wrong
	At            time.Time  `json:"at"`
	Test          bool       `json:"test,omitempty"` // of a test organization
}

// StatementReady is a fact on weir.ledger.v1: the statement of a
// closed period can be read.
type StatementReady struct {
	Organization string    `json:"organization"`
	Statement    int64     `json:"statement"` // its number
	Hash         string    `json:"hash"`      // SHA-256 of it and of all before, in hexadecimal
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Used         int64     `json:"used"`    // in the period, covered or not
	Overage      int64     `json:"overage"` // of that: not covered
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// BudgetThresholdReached is a fact on weir.ledger.v1: once per budget, period
// and threshold. One of Project and APIKey is empty, as in the facts below.
type BudgetThresholdReached struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	APIKey       string    `json:"api_key,omitempty"` // its id
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Percent      int       `json:"percent"`
	Budget       int64     `json:"budget"`
	Used         int64     `json:"used"`
	Batch        string    `json:"batch,omitempty"` // the batch that crossed it; empty: a decision did
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// BudgetExhausted is a fact on weir.ledger.v1: the project's or key's
// requests are refused until the period ends or the budget is raised.
type BudgetExhausted struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	APIKey       string    `json:"api_key,omitempty"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Budget       int64     `json:"budget"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// BudgetRestored is a fact on weir.ledger.v1: an exhausted budget was
// raised, or the next period has begun.
type BudgetRestored struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"`
	APIKey       string    `json:"api_key,omitempty"`
	PeriodStart  time.Time `json:"period_start"`
	PeriodEnd    time.Time `json:"period_end"`
	Budget       int64     `json:"budget"`
	Used         int64     `json:"used"`
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // of a test organization
}

// ErrorGroup is what facts about an error group say of it.
type ErrorGroup struct {
	Organization string `json:"organization"`
	Project      string `json:"project"`
	Group        string `json:"group"` // its id
	Title        string `json:"title"`
	Type         string `json:"type"`
	Culprit      string `json:"culprit"`
}

// ErrorGroupCreated is a fact on weir.grouping.v1: a new kind of error was
// seen. Weir itself creates groups, so that none has an actor.
type ErrorGroupCreated struct {
	ErrorGroup
	FirstSeen   time.Time `json:"first_seen"`
	Entry       string    `json:"entry,omitempty"`       // id of the log entry that created it
	Environment string    `json:"environment,omitempty"` // of this entry
	Release     string    `json:"release,omitempty"`     // of this entry
	Cause       string    `json:"cause,omitempty"`       // in words
	Addressed
}

// A SearchAlert is a fact on weir.alerts.v1: an alert on a saved search fires,
// no longer fires, or could not be evaluated for long. It is published once
// for each such change, unless people want to hear less.
type SearchAlert struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project,omitempty"` // empty: all projects
	Search       string    `json:"search"`            // its id
	Name         string    `json:"name"`
	Query        string    `json:"query"`
	Before       string    `json:"before"`    // what was published before: ok, firing, unevaluated
	Condition    string    `json:"condition"` // more_than, fewer_than
	Threshold    int64     `json:"threshold"`
	Entries      int64     `json:"entries"`              // that match, in the time from From to To
	Incomplete   bool      `json:"incomplete,omitempty"` // at least so many do
	From         time.Time `json:"from"`
	To           time.Time `json:"to"`
	Reason       string    `json:"reason,omitempty"`   // why it could not be evaluated
	Examples     []string  `json:"examples,omitempty"` // messages of entries, if people want them
	At           time.Time `json:"at"`
	Test         bool      `json:"test,omitempty"` // a person has tried it
	Addressed
}

// Addressed are the members of a fact that say who gets it, and where it leads
// in the console. Receivers get none of them: tenants makes a url of the path.
type Addressed struct {
	MailTo       *MailTo  `json:"mail_to,omitempty"`       // nil: owners and billing members
	Webhooks     []string `json:"webhooks,omitempty"`      // ids of those that get it as well as the ones that ask for all facts of its type
	OnlyWebhooks bool     `json:"only_webhooks,omitempty"` // no others get it
	Path         string   `json:"path,omitempty"`
}

// MailTo are members of the organization: of some roles, and single ones.
type MailTo struct {
	Roles   []string `json:"roles,omitempty"`
	Members []string `json:"members,omitempty"`
}

// ErrorGroupChanged is a fact on weir.grouping.v1: something was decided about
// an error group, by a person or program, or by Weir itself when errors came
// or time was over. Its type says what.
type ErrorGroupChanged struct {
	ErrorGroup
	Status      string `json:"status"` // unresolved, resolved, ignored or archived
	Before      string `json:"before"`
	Version     int64  `json:"version"` // one more for each decision about the group
	Assignee    string `json:"assignee,omitempty"`
	Into        string `json:"into,omitempty"`         // the group that it was merged into, or of what was split off
	From        string `json:"from,omitempty"`         // the group that it was taken out of
	Release     string `json:"release,omitempty"`      // in which it is resolved, or of the error that came
	NextRelease bool   `json:"next_release,omitempty"` // it is resolved in the next one
	Environment string `json:"environment,omitempty"`  // of the error that came
	Cause       string `json:"cause,omitempty"`        // why Weir itself decided, in words
	ErrorSpike
	Actor string    `json:"actor,omitempty"` // id of the member or API key; absent: Weir itself
	Links []string  `json:"links,omitempty"` // addresses of tickets and the like
	At    time.Time `json:"at"`
	Addressed
}

// ErrorSpike is an hour in which a group began to spike.
type ErrorSpike struct {
	Hour     time.Time `json:"hour,omitzero"`
	Count    int64     `json:"count,omitempty"`    // of its errors, when there were too many
	Expected float64   `json:"expected,omitempty"` // how many were expected in it; absent: none
}

// ErrorGroupMentioned is a fact on weir.grouping.v1: a note about an error
// group mentions members, who get mail. Notes of several groups that were
// written at once are one.
type ErrorGroupMentioned struct {
	ErrorGroup
	Note      string    `json:"note"`
	Members   []string  `json:"members"`        // ids of those whom it mentions
	More      int64     `json:"more,omitempty"` // groups beyond this one with the same note
	Actor     string    `json:"actor"`          // id of the member or API key
	ActorName string    `json:"actor_name,omitempty"`
	At        time.Time `json:"at"`
	Addressed
}

// ErrorAlert is a fact on weir.grouping.v1: what an alert on the errors of a
// project tells in one message.
type ErrorAlert struct {
	Organization string         `json:"organization"`
	Project      string         `json:"project"`
	Alert        string         `json:"alert"` // its id
	Name         string         `json:"name"`
	Groups       []AlertedGroup `json:"groups"`
	More         int64          `json:"more,omitempty"` // groups beyond those
	At           time.Time      `json:"at"`
	Test         bool           `json:"test,omitempty"` // a person has tried it
	Addressed
}

// An AlertedGroup is an error group that an alert tells of.
type AlertedGroup struct {
	Group       string `json:"group"`
	Title       string `json:"title"`
	Type        string `json:"type"`
	Culprit     string `json:"culprit"`
	Count       int64  `json:"count"`                 // of its errors in all, when the message was made
	Environment string `json:"environment,omitempty"` // of the error that caused it
	Trigger     string `json:"trigger"`               // new, regressed, unignored, spiking, many, users
	Cause       string `json:"cause"`                 // in words
	Path        string `json:"path"`                  // in the console
}

// A Notification is a fact that organizations can receive by webhook or
// mail. Its data is that of the event.
type Notification struct {
	Type  string // of the event
	Name  string // the type that receivers see; never renamed
	Means string // completes "when …"
}

// NameErrorAlertFired is the Name of TypeErrorAlertFired, by which webhooks ask for it.
const NameErrorAlertFired = "error_alert.fired"

// Notifications lists all of them: a fact without a line here is not
// sent. They are on NotificationTopics.
func Notifications() []Notification {
	return []Notification{
		{TypeThresholdReached, "quota.threshold_reached", "usage reaches a threshold of the quota, such as 80%"},
		{TypeQuotaExhausted, "quota.exhausted", "the quota is used up and logs are refused"},
		{TypeQuotaRestored, "quota.restored", "logs are accepted again"},
		{TypeOverageBegun, "quota.overage_begun", "usage goes beyond the quota, as overage"},
		{TypeTierChanged, "subscription.tier_changed", "the plan's tier changes"},
		{TypeGrantExpiring, "grant.expiring", "a grant expires within a week"},
		{TypeGrantExpired, "grant.expired", "a grant has expired"},
		{TypePeriodClosed, "period.closed", "a period closes"},
		{TypeAdjusted, "quota.adjusted", "a charge is corrected"},
		{TypeStatementReady, "statement.ready", "a statement is ready"},
		{TypeBudgetThresholdReached, "budget.threshold_reached", "a project or key reaches a threshold of its budget"},
		{TypeBudgetExhausted, "budget.exhausted", "a project or key uses up its budget"},
		{TypeBudgetRestored, "budget.restored", "an exhausted budget accepts logs again"},
		{TypeErrorGroupCreated, "error_group.created", "a new kind of error is seen"},
		{TypeErrorGroupResolved, "error_group.resolved", "an error is resolved"},
		{TypeErrorGroupReopened, "error_group.reopened", "a resolved or archived error is open again"},
		{TypeErrorGroupRegressed, "error_group.regressed", "a resolved error happens again"},
		{TypeErrorGroupIgnored, "error_group.ignored", "an error is ignored"},
		{TypeErrorGroupUnignored, "error_group.unignored", "an ignored error is open again"},
		{TypeErrorGroupAssigned, "error_group.assigned", "an error is assigned, or no longer is"},
		{TypeErrorGroupSpiking, "error_group.spiking", "an error happens far more often than before"},
		{TypeErrorGroupQuiet, "error_group.quiet", "an error has not happened for so long that it is archived"},
		{TypeErrorGroupMerged, "error_group.merged", "an error is merged into another"},
		{TypeErrorGroupSplit, "error_group.split", "some of an error become another"},
		{TypeErrorGroupUnmerged, "error_group.unmerged", "an error is taken out of the one that it was merged into"},
		{TypeErrorGroupMentioned, "error_group.mentioned", "a note about an error mentions members"},
		{TypeErrorAlertFired, NameErrorAlertFired, "an alert on errors has something to tell"},
		{TypeSearchAlertFired, "search_alert.firing", "an alert on a saved search fires"},
		{TypeSearchAlertResolved, "search_alert.resolved", "an alert on a saved search is over"},
		{TypeSearchAlertUnevaluated, "search_alert.unevaluated", "an alert on a saved search can't be evaluated"},
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
func NotificationTopics() []string { return []string{TopicLedger, TopicGrouping, TopicAlerts} }
