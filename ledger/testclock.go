package ledger

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxTestAhead is how far a test's clock may be ahead of real time: a
// year and what follows it.
const MaxTestAhead = 400 * 24 * time.Hour

// IsTest reports whether the organization is a test: its time passes by
// decisions, and it can send nothing.
func (o Organization) IsTest() bool { return !o.Clock.IsZero() }

// Now returns the organization's time at the real time now.
func (o Organization) Now(now time.Time) time.Time {
	if o.IsTest() {
		return o.Clock
	}
	return now
}

// RecordedAt returns the time recorded with a decision of now: for
// tests too a real time, by which chains are cut.
func (o Organization) RecordedAt(now time.Time) time.Time {
	if o.IsTest() && o.DecidedAt.After(now) {
		return o.DecidedAt
	}
	if o.IsTest() {
		return now
	}
	return o.NotBefore(now)
}

// TestBegun makes the organization a test.
type TestBegun struct{}

// ClockAdvanced sets a test's clock and does everything due by then.
type ClockAdvanced struct{ To time.Time }

// TestUse charges or refuses a request of a test.
type TestUse struct {
	ID                        string
	Bytes                     int64
	Entries                   int
	Project, Key, Environment string
}

// A TestUseOutcome is the outcome of a request of a test.
type TestUseOutcome struct {
	DryRun
	Charge  Charge  // zero: refused
	Refusal Refusal // zero: accepted
}

func (TestBegun) decide(b *Books, cause Cause) error {
	b.Organization.Clock = cause.At
	return nil
}

func (d ClockAdvanced) decide(b *Books, cause Cause) error {
	if err := (Advanced{Through: d.To}).decide(b, cause); err != nil {
		return err
	}
	b.Organization.Clock = d.To
	return nil
}

func (d TestUse) decide(b *Books, cause Cause) error {
	cause.Event, cause.Batch, cause.Project, cause.Key = d.ID+"/1", d.ID, d.Project, d.Key
	book, err := b.touch(cause.At, cause)
	if err != nil {
		return err
	}
	outcome := TestUseOutcome{DryRun: d.try(b, b.withPool(book), cause)}
	if outcome.Rule == "" {
		outcome.Charge = Charge{Organization: b.Organization.ID, Bytes: d.Bytes, Entries: d.Entries, Environment: d.Environment, Cause: cause}
		err = b.Charge(outcome.Charge)
	} else {
		outcome.Refusal = d.refusal(b.Organization, b.withPool(book), outcome.DryRun, cause)
		err = b.Refuse(&outcome.Refusal)
	}
	b.TestUses = append(b.TestUses, outcome)
	return err
}

// try returns the outcome of the request.
func (d TestUse) try(b *Books, book Book, cause Cause) DryRun {
	budgets := make([]Budget, len(b.Budgets.Kept))
	for i, budget := range b.Budgets.Kept {
		budgets[i] = budget.In(book.Period.Start)
	}
	return b.Organization.Try(book, d.Bytes, cause.At).Under(budgets, d.Project, d.Key)
}

// refusal returns the request as ingest would have refused it.
func (d TestUse) refusal(o Organization, book Book, dryRun DryRun, cause Cause) Refusal {
	cause.Event = d.ID
	refusal := Refusal{
		Organization: o.ID, Environment: d.Environment, Bytes: d.Bytes, PeriodStart: book.Period.Start, Requests: 1, Cause: cause,
		Remaining: o.Admits(book, cause.At), Quota: book.limit(o.Plans.At(cause.At)), Latch: Latch{Since: book.Raises},
		Exhausts: dryRun.Rule != RuleSuspended,
	}
	if dryRun.Rule == RuleBudget {
		refusal.Spender, refusal.Remaining, refusal.Quota, refusal.Since = dryRun.Budget.Spender, dryRun.Budget.Remaining(), dryRun.Budget.Bytes, dryRun.Budget.Since
	}
	return refusal
}

// AdvanceClock decides a test's time; zero keeps it. An organization
// without charges becomes a test. now is the real time.
func (b *Books) AdvanceClock(to, now time.Time) (decisions []Decision, err error) {
	clock := b.Organization.Clock
	if !b.Organization.IsTest() {
		if clock, err = now, b.checkNewTest(now); err != nil {
			return nil, err
		}
		decisions = append(decisions, TestBegun{})
	}
	switch {
	case to.IsZero() || to.Equal(clock):
		return decisions, nil
	case to.Before(clock):
		return nil, Invalid{"at", fmt.Sprintf("For this test it is %s already.", clock.Format(time.RFC3339)), "Use a later time: a test's clock never goes back."}
	case to.Sub(now) > MaxTestAhead:
		return nil, Invalid{"at", fmt.Sprintf("at is %s.", to.Format(time.RFC3339)),
			fmt.Sprintf("Use a time until %s.", now.Add(MaxTestAhead).Format(time.RFC3339))}
	}
	return append(decisions, ClockAdvanced{to}), nil
}

// checkNewTest refuses a real customer: its charges would mix with those of a test.
func (b *Books) checkNewTest(now time.Time) error {
	used := b.Organization.PeriodAt(b.Organization.Plans[0].From) != b.Organization.PeriodAt(now)
	for _, book := range b.books {
		used = used || book.Used() > 0
	}
	if used {
		return Invalid{"", "The organization was charged, or is older than its running period: it can't be a test.", "Create one for tests."}
	}
	return nil
}

// DecideFor decides to charge or refuse a request of a test.
func (d TestUse) DecideFor(o Organization) ([]Decision, error) {
	switch {
	case !o.IsTest():
		return nil, Invalid{"", "The organization is no test: what it sends is charged.", "Have a new organization be a test first, by PUT …/test-clock."}
	case d.Bytes < 1 || d.Bytes > MaxCharge:
		return nil, Invalid{"bytes", fmt.Sprintf("The request has %d bytes.", d.Bytes), fmt.Sprintf("Use a whole number from 1 to %d.", MaxCharge)}
	case d.Entries < 1 || d.Entries > maxTestEntries:
		return nil, Invalid{"entries", fmt.Sprintf("The request has %d entries.", d.Entries), fmt.Sprintf("Use a whole number from 1 to %d.", maxTestEntries)}
	}
	if err := d.validateNames(); err != nil {
		return nil, err
	}
	return []Decision{d}, nil
}

// validateNames refuses invalid ids: names stay in the books for good,
// even of a deleted organization.
func (d TestUse) validateNames() error {
	if d.Key != "" && !isKeyID(d.Key) {
		return Invalid{"key", fmt.Sprintf("%q is not the id of an API key.", d.Key), "Use key_ and 32 of the digits 0 to 9 and a to f, as ids of API keys have."}
	}
	if !slices.Contains([]string{"", "prod", "staging", "dev"}, d.Environment) {
		return Invalid{"environment", fmt.Sprintf("There is no environment %q.", d.Environment), "Use prod, staging or dev."}
	}
	return nil
}

// isKeyID reports whether an id has the form of a key's, whether the
// key exists or not.
func isKeyID(id string) bool {
	digits, found := strings.CutPrefix(id, "key_")
	return found && len(digits) == 32 && strings.Trim(digits, "0123456789abcdef") == ""
}

// maxTestEntries is the most entries of a request of a test, a day
// of real ones.
const maxTestEntries = 1_000_000_000

// Facts returns the events, marked for tests.
func (b *Books) Facts() []Event {
	for i := range b.Events {
		b.Events[i].Test = b.Organization.IsTest()
	}
	return b.Events
}
