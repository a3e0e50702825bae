package ledger

import (
	"fmt"
	"time"
)

// A Decision is what people, or time, decided about an organization. It is
// kept: books are rebuilt from the log and the decisions.
type Decision interface {
	decide(b *Books, cause Cause) error
}

// PlanChanged says that the organization subscribes to Plan from its instant on.
type PlanChanged struct{ Plan Plan }

// ChangeCancelled says that what was scheduled is dropped.
type ChangeCancelled struct{}

// SuspensionChanged says whether the organization may send anything.
type SuspensionChanged struct{ Suspended bool }

// Granted says that the organization got a grant.
type Granted struct{ Grant Grant }

// Revoked says that what is left of a grant was taken back.
type Revoked struct{ Grant string }

// Adjusted corrects charges, of the period that began at Of unless it is zero:
// Bytes above zero are given back, below zero charged.
type Adjusted struct {
	ID     string
	Bytes  int64
	Reason string
	Of     time.Time
}

// Advanced says that everything is done that was due until an instant.
type Advanced struct{ Through time.Time }

// An Invalid says why something can't be decided, and what to do about it.
type Invalid struct {
	Field  string // as the API calls it
	Detail string
	Fix    string
}

func (i Invalid) Error() string { return i.Detail }

// Decide books a decision, whose cause has to be the organization's next.
func (b *Books) Decide(d Decision, cause Cause) error {
	if b.Organization.Provisional() {
		return ErrNoOrganization
	}
	b.lines = 0
	if err := d.decide(b, cause); err != nil {
		return err
	}
	b.Organization.Decisions++
	if !b.Organization.IsTest() {
		b.Organization.DecidedAt = cause.At
	}
	return nil
}

// DecisionCause is the cause of what follows from an organization's next decision.
func (b *Books) DecisionCause(at time.Time) Cause {
	next := b.Organization.Decisions + 1
	return Cause{Event: fmt.Sprintf("decision/%d", next), Source: FromDecisions, Offset: next, At: at}
}

func (d PlanChanged) decide(b *Books, cause Cause) error {
	before, at := b.Organization.Plans.At(cause.At), cause.At
	prorated, err := b.tiers.prorated(b.Organization, before, d.Plan, at)
	if err != nil {
		return err
	}
	if d.Plan.From.After(at) {
		b.Organization.Plans = b.Organization.Plans.Then(d.Plan, at)
		return nil
	}
	book, err := b.touch(at, cause) // with the allowance of the plan before
	if err != nil {
		return err
	}
	wasOut, was, allowed := b.isOut(book, at), *book, b.allowed(book, at)
	b.Organization.Plans = b.Organization.Plans.Then(d.Plan, at)
	b.apply(book, cause, book.issue(prorated, Prorated)...)
	book.weigh(allowed, b.allowed(book, at))
	b.announce(book, was, wasOut, cause) // against what the plan before allowed
	b.changeTier(book, before.Tier, d.Plan.Tier, cause)
	return nil
}

// prorated is how much more than the one before a plan allows for the rest of
// the period, rounded up to a byte; never below zero.
func (t Tiers) prorated(o Organization, before, after Plan, at time.Time) (int64, error) {
	old, err := before.Terms(t)
	if err != nil {
		return 0, err
	}
	terms, err := after.Terms(t)
	if err != nil {
		return 0, err
	}
	period := o.PeriodAt(at)
	return mulDivUp(max(0, terms.Quota-old.Quota), int64(period.End.Sub(at)), int64(o.whole(period))), nil
}

func (b *Books) changeTier(book *Book, before, after Tier, cause Cause) {
	if before != after {
		b.Events = append(b.Events, Event{
			Kind: TierChanged, Organization: b.Organization.ID, Book: b.seen(book), Cause: cause, Before: before, After: after,
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
	grant.Status, grant.Announced = GrantScheduled, grant.Expires.Sub(grant.Starts) <= ExpiryNotice
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
	if grant.Status == GrantScheduled { // nothing of it was ever there
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

// decide gives bytes back as a grant that is used before anything else and
// lasts as long as the period, or charges them.
func (d Adjusted) decide(b *Books, cause Cause) error {
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	first := len(b.Transfers)
	if d.Bytes < 0 {
		b.post(book, cause, b.burn(book, -d.Bytes, cause.At, Corrected)...)
	} else {
		grant := &Grant{
			ID: d.ID, Amount: d.Bytes, Starts: cause.At, Expires: book.Period.End, Source: FromAdjustment, Reason: d.Reason, Created: cause.At,
			Status: GrantScheduled, Announced: true,
		}
		b.Grants = append(b.Grants, grant)
		if err := b.start(grant, Corrected, cause); err != nil {
			return err
		}
	}
	b.concern(first, d.Of)
	b.Events = append(b.Events, Event{
		Kind: BooksAdjusted, Organization: b.Organization.ID, Book: b.seen(book), Cause: cause, Subject: d.ID, Amount: d.Bytes, Of: d.Of,
	})
	return nil
}
