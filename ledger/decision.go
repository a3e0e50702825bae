package ledger

import (
	"fmt"
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

func (b *Books) changeTier(book *Book, before, after Tier, cause Cause) {
	if before != after {
		b.Events = append(b.Events, Event{
			Kind: TierChanged, Organization: b.Organization.ID, Book: b.withPool(book), Cause: cause, Before: before, After: after,
		})
	}
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
	grant := b.grant(d.Grant)
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
		b.post(book, cause, b.owe(book, -d.Bytes, cause.At)...)
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
