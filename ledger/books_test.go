package ledger

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
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
			books := newBooks(test.tier)
			perform(t, books, test.given...)
			books.Transfers, books.Events = nil, nil
			perform(t, books, test.when)
			if got := describe(books.Transfers); got != test.transfers {
				t.Errorf("transfers\n got %s\nwant %s", got, test.transfers)
			}
			if got := describeEvents(books.Events); got != test.events {
				t.Errorf("events\n got %s\nwant %s", got, test.events)
			}
		})
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

// After random steps every period's balances sum to zero and follow
// from its transfers, only the issuer is negative, overage exists only
// without a grant left, and each threshold is announced once.
func TestBooksStaySound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		books := newBooks([]Tier{"", Indie, Scale}[random.IntN(3)])
		for n := range 60 {
			_ = randomStep(random, n)(books)
			checkSound(t, books)
		}
		checkOnce(t, books.Events)
	}
}

// randomStep is the n-th step.
func randomStep(random *rand.Rand, n int) step {
	at := time.Date(2026, 10, 1+random.IntN(80), random.IntN(24), 0, 0, 0, time.UTC)
	if random.IntN(12) == 0 {
		return startPlan(at.Format(time.RFC3339), Indie)
	}
	c := Charge{Organization: "acme", Bytes: random.Int64N(40), Entries: 1, Cause: Cause{Event: fmt.Sprint("charge ", n), At: at}}
	return func(b *Books) error { return b.Charge(c) }
}

func checkSound(t testing.TB, books *Books) {
	t.Helper()
	replayed := map[calendar.Period]*Balances{}
	for _, transfer := range books.Transfers {
		if transfer.Amount < 1 || transfer.From == transfer.To {
			t.Fatalf("transfer %+v moves nothing", transfer)
		}
		if replayed[transfer.Period] == nil {
			replayed[transfer.Period] = &Balances{}
		}
		replayed[transfer.Period].Apply(transfer)
	}
	for _, book := range books.All() {
		switch b := book.Balances; {
		case b.Sum() != 0:
			t.Fatalf("%v sums to %d", b, b.Sum())
		case b[Allowance] < 0 || b[Consumed] < 0 || b[Overage] < 0:
			t.Fatalf("%v: below zero", b)
		case b[Overage] > 0 && b[Allowance] > 0:
			t.Fatalf("%v: overage beside a grant", b)
		case replayed[book.Period] != nil && *replayed[book.Period] != b:
			t.Fatalf("%v, the transfers sum to %v", b, *replayed[book.Period])
		}
	}
}

func checkOnce(t testing.TB, events []Event) {
	t.Helper()
	said := map[string]bool{}
	for _, event := range events {
		if id := event.ID(); said[id] {
			t.Fatalf("published twice: %s", id)
		} else {
			said[id] = true
		}
	}
}

// Batches make no difference: books stored after one and opened for the
// next end the same, with the same transfers and events.
func TestBatchesMakeNoDifference(t *testing.T) {
	whole, stored := newBooks(Indie), newBooks(Indie)
	var transfers []Transfer
	var events []Event
	for i := range int64(40) {
		c := charge(d1, i%7)
		perform(t, whole, c)
		stored = OpenBooks(stored.Organization, nil, stored.All()...)
		perform(t, stored, c)
		transfers, events = append(transfers, stored.Transfers...), append(events, stored.Events...)
	}
	if !reflect.DeepEqual(whole.Transfers, transfers) || !reflect.DeepEqual(whole.Events, events) {
		t.Error("batches changed the transfers or events")
	}
	if !reflect.DeepEqual(whole.All(), stored.All()) {
		t.Errorf("books %v and %v", whole.All(), stored.All())
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
