package ledger

import (
	"fmt"
	"slices"
	"time"
)

// A Decision about an organization is made by people or by time.
// Decisions are stored: books are rebuilt from the log and them.
type Decision interface {
	decide(b *Books, cause Cause) error
}

// PlanStarted sets an organization's first plan and issues the
// allowance of each period with charges.
type PlanStarted struct {
	Plan       Plan
	Opened     time.Time  // when the ledger first saw the organization
	Thresholds Thresholds // of the installation
}

// PlanChanged sets the plan from its instant on.
type PlanChanged struct{ Plan Plan }

// ChangeCancelled cancels the scheduled plan.
type ChangeCancelled struct{}

// SuspensionChanged suspends the organization or ends that.
type SuspensionChanged struct{ Suspended bool }

// Granted adds a grant.
type Granted struct{ Grant Grant }

// Revoked takes back what is left of a grant.
type Revoked struct{ Grant string }

// Adjusted corrects charges, of the period that began at Of unless it
// is zero: positive Bytes are credited, negative charged.
type Adjusted struct {
	ID     string
	Bytes  int64
	Reason string
	Of     time.Time
}

// Advanced does everything due until an instant.
type Advanced struct{ Through time.Time }

// An Invalid is why a decision is refused, and how to correct it.
type Invalid struct {
	Field  string // its name in the API
	Detail string
	Fix    string
}

func (i Invalid) Error() string { return i.Detail }

// Decide books a decision. Its cause must be the organization's next.
func (b *Books) Decide(d Decision, cause Cause) error {
	if _, starts := d.(PlanStarted); starts != b.Organization.Provisional() {
		return ErrNoOrganization
	}
	b.lines = 0
	before := b.standing()
	if err := d.decide(b, cause); err != nil {
		return err
	}
	b.Organization.Decisions++
	b.Steps = append(b.Steps, Step{Decision: d, Before: before, After: b.standing()})
	if !b.Organization.IsTest() {
		b.Organization.DecidedAt = cause.At
	}
	return nil
}

// DecisionCause returns the cause of the organization's next decision.
func (b *Books) DecisionCause(at time.Time) Cause {
	next := b.Organization.Decisions + 1
	return Cause{Event: fmt.Sprintf("decision/%d", next), Source: FromDecisions, Offset: next, At: at}
}

func (d PlanChanged) decide(b *Books, cause Cause) error {
	before, at := b.Organization.Plans.At(cause.At), cause.At
	if d.Plan.From.After(at) {
		b.Organization.Plans = b.Organization.Plans.Then(d.Plan, at)
		return nil
	}
	book, err := b.touch(at, cause) // with the old plan's allowance
	if err != nil {
		return err
	}
	wasOut, was, allowed := b.isExhausted(book, at), *book, b.allowed(book, at)
	b.Organization.Plans = b.Organization.Plans.Then(d.Plan, at)
	b.apply(book, cause, book.issue(b.Organization.prorated(before, d.Plan, at), Prorated)...)
	book.countRaise(allowed, b.allowed(book, at))
	b.announce(book, was, wasOut, cause) // against the old plan's limit
	b.changeTier(book, before.Tier, d.Plan.Tier, cause)
	return nil
}

// prorated returns how much more a plan allows for the rest of the
// period than the one before, rounded up to a byte; never negative.
func (o Organization) prorated(before, after Plan, at time.Time) int64 {
	period := o.PeriodAt(at)
	return mulDivUp(max(0, after.Terms().Quota-before.Terms().Quota), int64(period.End.Sub(at)), int64(o.whole(period)))
}

func (ChangeCancelled) decide(b *Books, cause Cause) error {
	b.Organization.Plans = b.Organization.Plans.Until(cause.At)
	return nil
}

func (d SuspensionChanged) decide(b *Books, _ Cause) error {
	b.Organization.Suspended = d.Suspended
	return nil
}

func (d Granted) decide(b *Books, cause Cause) error {
	grant := d.Grant
	grant.Status, grant.Announced, grant.Decision = GrantScheduled, grant.Expires.Sub(grant.Starts) <= ExpiryNotice, cause.Offset
	b.Grants = append(b.Grants, &grant)
	if grant.Starts.After(cause.At) {
		return nil
	}
	return b.start(&grant, Issued, cause)
}

// start puts a grant in force.
func (b *Books) start(grant *Grant, reason Reason, cause Cause) error {
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	grant.Status = GrantActive
	b.post(book, cause, book.issueGrant(grant, reason)...)
	return nil
}

func (d Revoked) decide(b *Books, cause Cause) error {
	grant := b.Grants.find(d.Grant)
	if grant == nil {
		return ErrNoGrant
	}
	if grant.Status == GrantScheduled { // it was never in force
		grant.Status, grant.Voided, grant.Ended = GrantVoided, grant.Amount, cause.At
		return nil
	}
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	grant.Status, grant.Ended = GrantVoided, cause.At
	b.post(book, cause, move{from: Credit, to: Voided, amount: grant.Remaining, reason: TakenBack, grant: grant})
	return nil
}

// decide credits bytes as a grant that is used first and ends with the
// period, or charges them.
func (d Adjusted) decide(b *Books, cause Cause) error {
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	first := len(b.Transfers)
	if d.Bytes < 0 {
		b.post(book, cause, b.owed(book, -d.Bytes, cause.At)...)
	} else {
		grant := &Grant{
			ID: d.ID, Amount: d.Bytes, Starts: cause.At, Expires: book.Period.End, Source: FromAdjustment, Reason: d.Reason, Created: cause.At,
			Status: GrantScheduled, Announced: true, Decision: cause.Offset,
		}
		b.Grants = append(b.Grants, grant)
		if err := b.start(grant, Corrected, cause); err != nil {
			return err
		}
	}
	b.correct(first, d.Of)
	b.Events = append(b.Events, Event{
		Kind: BooksAdjusted, Organization: b.Organization.ID, Book: b.withPool(book), Cause: cause, Subject: d.ID, Amount: d.Bytes, Of: d.Of,
	})
	return nil
}

// Adjust decides an adjustment. of is any instant of the wrong period;
// zero: the running one.
func (b *Books) Adjust(bytes int64, reason, id string, of, at time.Time) (Decision, error) {
	if bytes == 0 || bytes > MaxGrant || bytes < -MaxGrant {
		return nil, Invalid{"amount", fmt.Sprintf("The amount is %d bytes.", bytes),
			fmt.Sprintf("Use a whole number to %d: above zero to give back, below zero to charge.", MaxGrant)}
	}
	if err := validateReason(reason); err != nil {
		return nil, err
	}
	if !of.IsZero() {
		if of.After(at) || of.Before(b.Organization.Plans[0].From.AddDate(0, -1, -1)) {
			return nil, Invalid{"period", fmt.Sprintf("The organization had no period at %s.", of.Format(time.RFC3339)), "Use an instant of a period that has begun."}
		}
		of = b.Organization.PeriodAt(of).Start
	}
	if bytes > 0 {
		if err := b.Grants.room(bytes); err != nil {
			return nil, err
		}
	}
	return Adjusted{ID: id, Bytes: bytes, Reason: reason, Of: of}, nil
}

// A LimitReached is the error for a reached limit.
type LimitReached struct {
	Limit int
	Text  string // with a place for the limit
}

func (l LimitReached) Error() string { return fmt.Sprintf(l.Text, l.Limit) }

// The limits of an organization.
var (
	tooManyGrants    = LimitReached{MaxGrants, "The organization has %d grants of which something is left, which is as many as it may. Void one first."}
	tooManyBudgets   = LimitReached{MaxBudgets, "An organization may have %d budgets. Remove one first."}
	tooManyDecisions = LimitReached{MaxDecisions, "There are %d decisions about the organization in this period, which is as many as there may be. " +
		"More can be made in the next one."}
)

// MaxDecisions bounds an organization's decisions in a period, and so
// its stream, its grants and its statement, which is made while others
// wait for the books.
const MaxDecisions = 10_000

// RoomForDecisions refuses more decisions than MaxDecisions in the
// period of an instant. madeAt returns a decision's time by its number;
// zero: it is gone.
func (o Organization) RoomForDecisions(more int, at time.Time, madeAt func(number int64) (time.Time, error)) error {
	first := o.Decisions + int64(more) - MaxDecisions // if it is of the period, the last new one is too many
	if first < 1 {
		return nil
	}
	period := o.BookedIn(at)
	if o.IsTest() { // tests use the real month, not their clock
		period = o.PeriodAt(at)
	}
	made, err := madeAt(first)
	if err != nil || made.Before(period.Start) {
		return err
	}
	return tooManyDecisions
}

// StandingOf hashes what decisions have made of an organization: its plans,
// when its periods begin, whether it is suspended, its thresholds, which
// periods are closed, the time of a test, and its budgets, in any order.
// Charges change none of it.
func StandingOf(o Organization, budgets []Budget) Hash {
	d := newDigest(standingForm)
	d.text(o.ID)
	d.time(o.Opened, o.ClosedThrough, o.Clock)
	d.flag(o.Suspended)
	d.number(int64(o.Budgets), int64(o.AnchorDay), int64(len(o.Anchors)))
	for _, anchor := range o.Anchors {
		d.time(anchor.From)
		d.number(int64(anchor.Day))
	}
	o.Thresholds.hashTo(d)
	o.Usual.hashTo(d)
	d.number(int64(len(o.Plans)))
	for _, plan := range o.Plans {
		plan.hashTo(d)
	}
	budgets = slices.SortedFunc(slices.Values(budgets), func(a, b Budget) int { return CompareSpenders(a.Spender, b.Spender) })
	for _, budget := range budgets {
		d.text(budget.Project)
		d.text(budget.Key)
		d.number(budget.Bytes, budget.Since)
	}
	return d.sum()
}

// standing returns the standing of opened books.
func (b *Books) standing() Hash {
	budgets := make([]Budget, len(b.Budgets.Kept))
	for i, budget := range b.Budgets.Kept {
		budgets[i] = *budget
	}
	return StandingOf(b.Organization, budgets)
}

func (p Plan) hashTo(d digest) {
	d.time(p.From)
	d.text(string(p.Tier))
	d.number(p.Quota, int64(p.RequestsPerMinute), p.OverageCap)
	d.flag(p.Overage)
	d.number(p.TierTerms.Version, p.TierTerms.Quota, int64(p.TierTerms.RequestsPerMinute), int64(p.TierTerms.RetentionDays))
}

func (t Thresholds) hashTo(d digest) {
	d.flag(t == nil)
	d.number(int64(len(t)))
	for _, percent := range t {
		d.number(int64(percent))
	}
}

// A Step is a decision that opened books have made, with the standing of
// their organization before and after it.
type Step struct {
	Decision      Decision
	Before, After Hash
}

// Hash returns the hash of a decision as it is stored. The decision has
// that of the one before.
func (d LinkedDecision) Hash() Hash {
	digest := newDigest(decisionForm)
	digest.number(d.Number)
	digest.text(d.Name)
	digest.text(d.Data)
	digest.text(d.Metadata)
	return digest.sum()
}

// time adds instants as they are stored, in microseconds.
func (d digest) time(instants ...time.Time) {
	for _, at := range instants {
		d.flag(at.IsZero())
		d.number(at.UnixMicro())
	}
}

func (d digest) flag(is bool) {
	if is {
		d.number(1)
		return
	}
	d.number(0)
}
