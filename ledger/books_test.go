package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339Nano, text)
	testenv.Must(t, err)
	return instant
}

// smallTiers keeps the numbers of the tables readable.
func smallTiers() Tiers {
	return Tiers{
		Indie: {Quota: 100, RequestsPerMinute: 60},
		Scale: {Quota: 400, RequestsPerMinute: 1800},
	}
}

// smallRules are those with which the tests decide.
func smallRules() Rules {
	return Rules{Version: 1, Tiers: smallTiers(), Thresholds: DefaultThresholds()}
}

// seeded is a plan with the terms of its tier.
func seeded(plan Plan) Plan {
	plan, err := smallRules().Seed(plan)
	if err != nil {
		panic(err)
	}
	return plan
}

// A step is one call on the books.
type step func(*Books) error

func charge(when string, bytes int64) step {
	return func(b *Books) error { return b.Charge(chargeOf(when, bytes)) }
}

func chargeOf(when string, bytes int64) Charge {
	return Charge{Organization: "acme", Bytes: bytes, Entries: 1, Cause: causeAt(when, FromLogs)}
}

func causeAt(when string, source Source) Cause {
	instant, err := time.Parse(time.RFC3339, when)
	if err != nil {
		panic(err)
	}
	return Cause{Event: "event of " + when, Source: source, At: instant}
}

func startPlan(when string, tier Tier) step {
	return func(b *Books) error {
		from := causeAt(when, FromDecisions).At
		decisions, err := smallRules().Start(b.Organization, Plan{From: from, Tier: tier})
		for _, decision := range decisions {
			err = errors.Join(err, b.Decide(decision, b.DecisionCause(from)))
		}
		return err
	}
}

func perform(t testing.TB, b *Books, steps ...step) {
	t.Helper()
	for i, step := range steps {
		if err := step(b); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

func newBooks(tier Tier) *Books {
	organization := Organization{ID: "acme", Anchoring: Anchoring{AnchorDay: DefaultAnchorDay}, Usual: DefaultThresholds()}
	if tier != "" {
		organization.Plans = Plans{seeded(Plan{From: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Tier: tier})}
	}
	return OpenBooks(organization, nil)
}

// describe lists the transfers as "from>to amount reason" of each period's month.
func describe(transfers []Transfer) string {
	var lines []string
	for _, t := range transfers {
		line := fmt.Sprintf("%s %s>%s %d %s", t.Period.Start.Format("01"), t.From, t.To, t.Amount, t.Reason)
		if t.Grant != "" {
			line += " " + t.Grant
		}
		if !t.Of.IsZero() {
			line += " of " + t.Of.Format("01")
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func describeEvents(events []Event) string {
	var lines []string
	for _, e := range events {
		switch e.Kind {
		case ThresholdReached:
			lines = append(lines, fmt.Sprintf("%d%% by %s", e.Percent, e.Cause.Event))
		case QuotaExhausted:
			lines = append(lines, "exhausted by "+e.Cause.Event)
		case QuotaRestored:
			lines = append(lines, "restored")
		case OverageBegun:
			lines = append(lines, "overage")
		case TierChanged:
			lines = append(lines, fmt.Sprintf("%s>%s", e.Before, e.After))
		case GrantExpiring:
			lines = append(lines, e.Grant.ID+" expires soon")
		case GrantHasExpired:
			lines = append(lines, e.Grant.ID+" expired")
		case PeriodClosed:
			lines = append(lines, e.Book.Period.Start.Format("01")+" closed")
		case BooksAdjusted:
			lines = append(lines, fmt.Sprintf("adjusted by %d", e.Amount))
		}
	}
	return strings.Join(lines, "; ")
}

const (
	d1 = "2026-11-02T00:00:00Z"
	d2 = "2026-11-16T00:00:00Z"
	d3 = "2026-11-20T00:00:00Z"
	n1 = "2026-12-05T00:00:00Z"
)

// Given an organization's tier and what was booked, when something happens,
// then these transfers and events follow.
func TestBooks(t *testing.T) {
	tests := []struct {
		name      string
		tier      Tier // empty: provisional
		given     []step
		when      step
		transfers string
		events    string
	}{
		{"first charge of a period issues the grant", Indie, nil, charge(d1, 30),
			"11 issuer>grant 100 issued; 11 grant>consumed 30 charged", ""},
		{"later charges only charge", Indie, []step{charge(d1, 10)}, charge(d2, 5), "11 grant>consumed 5 charged", ""},
		{"a charge of the last byte is covered and exhausts", Indie, []step{charge(d1, 90)}, charge(d2, 10),
			"11 grant>consumed 10 charged", "100% by event of " + d2 + "; exhausted by event of " + d2},
		{"what exceeds the grant is overshoot", Indie, []step{charge(d1, 90)}, charge(d2, 25),
			"11 grant>consumed 10 charged; 11 issuer>overshoot 15 charged",
			"100% by event of " + d2 + "; exhausted by event of " + d2},
		{"beyond the grant all is overshoot, and nothing is said again", Indie, []step{charge(d1, 120)}, charge(d2, 7),
			"11 issuer>overshoot 7 charged", ""},
		{"one charge may reach several thresholds", Indie, nil, charge(d1, 85),
			"11 issuer>grant 100 issued; 11 grant>consumed 85 charged", "50% by event of " + d1 + "; 80% by event of " + d1},
		{"a threshold is reached at the exact byte", Indie, []step{charge(d1, 49)}, charge(d2, 1),
			"11 grant>consumed 1 charged", "50% by event of " + d2},
		{"a charge of no bytes moves nothing", Indie, []step{charge(d1, 1)}, charge(d2, 0), "", ""},
		{"the next period has its own grant", Indie, []step{charge(d1, 100)}, charge(n1, 1),
			"12 issuer>grant 100 issued; 12 grant>consumed 1 charged", ""},
		{"a late charge goes to the period of its acceptance", Indie, []step{charge(d1, 10), charge(n1, 1)}, charge(d3, 5),
			"11 grant>consumed 5 charged", ""},
		{"an unknown organization is charged without a grant", "", nil, charge(d1, 30), "11 issuer>overage 30 charged", ""},
		{"its first plan settles every period that has charges", "", []step{charge(d1, 30), charge(n1, 150)}, startPlan(n1, Indie),
			"11 issuer>grant 100 issued; 11 overage>issuer 30 settled; 11 grant>consumed 30 settled; " +
				"12 issuer>grant 100 issued; 12 overage>issuer 100 settled; 12 grant>consumed 100 settled; 12 overage>overshoot 50 settled",
			"50% by decision/1; 80% by decision/1; 100% by decision/1; exhausted by decision/1"},
		{"a plan opens the period in which it starts", "", nil, startPlan(d1, Indie), "11 issuer>grant 100 issued", ""},
		{"news of a plan that comes again changes nothing", Indie, []step{charge(d1, 10)}, startPlan(d2, Scale), "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			follow(t, newBooks(test.tier), test.given, test.when, test.transfers, test.events)
		})
	}
}

// follow fails the test where other transfers and events follow from a
// step after others.
func follow(t *testing.T, books *Books, given []step, when step, transfers, events string) {
	t.Helper()
	perform(t, books, given...)
	books.Transfers, books.Events = nil, nil
	perform(t, books, when)
	if got := describe(books.Transfers); got != transfers {
		t.Errorf("transfers\n got %s\nwant %s", got, transfers)
	}
	if got := join(describeEvents(books.Events), describeBudgetEvents(books.Events)); got != events {
		t.Errorf("events\n got %s\nwant %s", got, events)
	}
}

// An invalid charge or plan is refused and changes nothing.
func TestBooksRefuse(t *testing.T) {
	tests := []struct {
		name string
		tier Tier
		when step
	}{
		{"a negative charge", Indie, charge(d1, -1)},
		{"a charge beyond all measure", Indie, charge(d1, MaxCharge+1)},
		{"a charge from before there was a ledger", Indie, charge("1970-01-01T00:00:00Z", 1)},
		{"a plan of an unknown tier", "", startPlan(d1, "gold")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			books := newBooks(test.tier)
			if err := test.when(books); err == nil {
				t.Error("no error")
			}
			if len(books.Transfers) > 0 || len(books.All()) > 0 {
				t.Errorf("transfers %v, books %v", books.Transfers, books.All())
			}
		})
	}
	if _, err := smallTiers().Terms("gold"); !errors.Is(err, ErrUnknownTier) {
		t.Errorf("error %v, want ErrUnknownTier", err)
	}
}

// Reading an untouched period shows its allowance and opens nothing.
func TestAtOpensNothing(t *testing.T) {
	books := newBooks(Indie)
	book, err := books.At(at(t, n1))
	if err != nil || book.Granted() != 100 || book.Used() != 0 {
		t.Errorf("book %+v, error %v", book, err)
	}
	if len(books.All()) != 0 {
		t.Errorf("books %v were opened", books.All())
	}
}

// The largest quota has thresholds too: no intermediate product overflows.
func TestThresholdsOfTheLargestQuota(t *testing.T) {
	if got := mulDivUp(MaxGrant, 80, 100); got != MaxGrant/10*8+5 {
		t.Errorf("80 %% of %d = %d", MaxGrant, got)
	}
}

// The state follows from what remains; a suspension overrides it.
func TestState(t *testing.T) {
	full, empty := Book{Balances: Balances{Issuer: -9, Allowance: 9}}, Book{Balances: Balances{Issuer: -9, Consumed: 9}}
	tests := []struct {
		suspended bool
		book      Book
		want      string
	}{{false, full, Active}, {false, empty, Exhausted}, {true, full, Suspended}, {true, empty, Suspended}}
	for _, test := range tests {
		if got := (Organization{Suspended: test.suspended}).State(test.book, time.Time{}); got != test.want {
			t.Errorf("suspended %v, %v: %q, want %q", test.suspended, test.book, got, test.want)
		}
	}
}

// Every default tier has valid terms, as on the price list.
func TestDefaultTiers(t *testing.T) {
	tiers := DefaultTiers()
	if err := tiers.Validate(); err != nil {
		t.Error(err)
	}
	want := Tiers{
		Indie: {0, 1 << 30, 60, 7}, Bootstrapper: {0, 10 << 30, 300, 30}, Compliance: {0, 50 << 30, 600, 365}, Scale: {0, 500 << 30, 1800, 90},
	}
	if !reflect.DeepEqual(tiers, want) {
		t.Errorf("tiers %v, want %v", tiers, want)
	}
	if err := (Tiers{Indie: {}}).Validate(); err == nil {
		t.Error("terms of nothing are accepted")
	}
}

// A closed period's book that was not read is never opened: it would be
// overwritten.
func TestAClosedPeriodIsNotOpened(t *testing.T) {
	books := newBooks(Indie)
	books.Organization.ClosedThrough = at(t, "2026-12-01T00:00:00Z")
	if _, err := books.touch(at(t, "2026-11-30T23:59:59Z"), Cause{}); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}
