package ledger

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// clock sets the time of a test.
func clock(to string) step {
	return func(b *Books) error {
		return b.Decide(ClockAdvanced{date(to)}, b.DecisionCause(b.Organization.NotBefore(date("11-02"))))
	}
}

// useTest charges a test as if key k of project shop had sent so much.
func useTest(bytes int64) step {
	return func(b *Books) error {
		cause := b.DecisionCause(b.Organization.NotBefore(date("11-02")))
		return b.Decide(TestUse{ID: "rhs_" + cause.Event, Bytes: bytes, Entries: 3, Project: "shop", Key: "k"}, cause)
	}
}

// Given an organization on a plan of 100 bytes a period that became a
// test on 2 November, when it is used, then these transfers
// and events follow.
func TestTestClock(t *testing.T) {
	for _, test := range []struct {
		name      string
		given     []step
		when      step
		transfers string
		events    string
	}{
		{"a request is charged at the clock", []step{clock("11-20")}, useTest(60), "11 issuer>grant 100 issued; 11 grant>consumed 60 charged",
			"50% by rhs_decision/3/1"},
		{"one that the rest does not cover exhausts", []step{useTest(60)}, useTest(50), "", "exhausted by rhs_decision/3"},
		{"so does the last byte", []step{useTest(60)}, useTest(40), "11 grant>consumed 40 charged",
			"80% by rhs_decision/3/1; 100% by rhs_decision/3/1; exhausted by rhs_decision/3/1"},
		{"nothing is charged of who is exhausted", []step{useTest(60), useTest(50)}, useTest(1), "", ""},
		{"nor of who is suspended", []step{decide("11-02", SuspensionChanged{Suspended: true})}, useTest(1), "11 issuer>grant 100 issued", ""},
		{"nor beyond a budget, which it exhausts", []step{allow("11-02", shop, 50, 0)}, useTest(51), "", "project:shop exhausted"},
		{"a budget counts", []step{allow("11-02", key, 50, 0)}, useTest(40), "11 grant>consumed 40 charged", "key:k 50%; key:k 80%"},
		{"periods close at once when time passes", []step{useTest(60)}, clock("12-01"),
			"11 grant>expired 40 expired; 12 issuer>grant 100 issued", "11 closed"},
		{"several close in their order", []step{useTest(100)}, func(b *Books) error {
			return b.Decide(ClockAdvanced{date("12-31").AddDate(0, 0, 15)}, b.DecisionCause(date("11-02")))
		},
			"12 issuer>grant 100 issued; 12 grant>expired 100 expired; 01 issuer>grant 100 issued", "11 closed; restored; 12 closed"},
		{"what is due on the way is done at its time", []step{give("11-02", "g", 50, priority(200), expires("11-20")), useTest(120)}, clock("11-21"),
			"11 credit>expired 30 expired g", "g expires soon; 100% by decision/4/1795132800000000; exhausted by decision/4/1795132800000000; g expired"},
	} {
		t.Run(test.name, func(t *testing.T) {
			books := newBooks(Indie)
			books.Organization.ClosedThrough = date("11-01")
			perform(t, books, decide("11-02", TestBegun{}))
			follow(t, books, test.given, test.when, test.transfers, test.events)
			for _, fact := range books.Facts() {
				if !fact.Test {
					t.Errorf("%s is not marked as one of a test", fact.ID())
				}
			}
			if !books.Due().IsZero() {
				t.Errorf("%s something happens by itself", books.Due())
			}
		})
	}
}

// A test's own requests are refused, whatever it has left. Its
// decisions are recorded in real time, which never goes back.
func TestATestIsApart(t *testing.T) {
	books := newBooks(Indie)
	perform(t, books, decide("11-02", TestBegun{}), clock("11-20"))
	o, now := books.Organization, date("11-03")
	if state := NewAccountState(o, books.All()[0], nil, 1, now); state.State != Suspended {
		t.Errorf("published as %+v", state)
	}
	o.DecidedAt = date("11-02T06")
	if at := o.NotBefore(now); !at.Equal(date("11-20")) || !o.RecordedAt(now).Equal(now) || !o.RecordedAt(date("11-02")).Equal(o.DecidedAt) {
		t.Errorf("decided at %s, recorded at %s", at, o.RecordedAt(now))
	}
}

// A charged organization, or one older than the running period, can't
// become a test. A clock goes forward, by at most a year and some.
func TestWhoMayBeATest(t *testing.T) {
	young := func(steps ...step) *Books {
		books := newBooks("")
		perform(t, books, startPlan("2026-11-01T06:00:00Z", Indie))
		perform(t, books, steps...)
		return books
	}
	now := date("11-02")
	for name, test := range map[string]struct {
		books   *Books
		to      time.Time
		decided int // -1: refused
	}{
		"a new one":               {young(), time.Time{}, 1},
		"a new one, at once":      {young(), date("12-05"), 2},
		"one that has a grant":    {young(give("11-01T12", "g", 5)), time.Time{}, 1},
		"one that was charged":    {young(use("11-01T12", 5)), time.Time{}, -1},
		"an old one":              {newBooks(Indie), time.Time{}, -1},
		"a year":                  {young(decide("11-02", TestBegun{})), now.AddDate(1, 0, 0), 1},
		"longer":                  {young(decide("11-02", TestBegun{})), now.Add(MaxTestAhead + 1), -1},
		"back":                    {young(decide("11-02", TestBegun{}), clock("11-09")), date("11-08"), -1},
		"the same instant":        {young(decide("11-02", TestBegun{}), clock("11-09")), date("11-09"), 0},
		"no instant, of a test":   {young(decide("11-02", TestBegun{}), clock("11-09")), time.Time{}, 0},
		"before now, of a new on": {young(), date("11-01T12"), -1},
	} {
		decisions, err := test.books.AdvanceClock(test.to, now)
		var invalid Invalid
		if test.decided < 0 && !errors.As(err, &invalid) || test.decided >= 0 && (err != nil || len(decisions) != test.decided) {
			t.Errorf("%s: %v, %v", name, decisions, err)
		}
	}
	for _, spec := range []TestUse{
		{Bytes: 0, Entries: 1}, {Bytes: 1, Entries: 0}, {Bytes: MaxCharge + 1, Entries: 1}, {Bytes: 1, Entries: 1, Environment: "Quetzal"},
		{Bytes: 1, Entries: 1, Key: "Quetzal"}, {Bytes: 1, Entries: 1, Key: "key_quetzal"}, {Bytes: 1, Entries: 1, Key: "key_" + strings.Repeat("q", 32)},
	} {
		if decisions, err := spec.DecideFor(young(decide("11-02", TestBegun{})).Organization); err == nil {
			t.Errorf("%+v is used: %v", spec, decisions)
		}
	}
	named := TestUse{Bytes: 1, Entries: 1, Project: "prj_1", Key: "key_" + strings.Repeat("0a", 16), Environment: "staging"}
	if decisions, err := named.DecideFor(young(decide("11-02", TestBegun{})).Organization); err != nil || len(decisions) != 1 {
		t.Errorf("by ids as there are: %v, %v", decisions, err)
	}
	if _, err := (TestUse{Bytes: 1, Entries: 1}).DecideFor(young().Organization); err == nil {
		t.Error("an organization that is no test can be used")
	}
}
