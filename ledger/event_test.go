package ledger

import (
	"slices"
	"testing"
)

// set sets the thresholds of an organization.
func set(at string, percents ...int) step {
	return decide(at, ThresholdsSet{append(Thresholds{}, percents...)})
}

// Given a plan of 100 bytes a period and the thresholds 50, 80 and 100,
// when something is used or thresholds are set, then these events follow.
func TestThresholds(t *testing.T) {
	soft := to("11-02", "11-02", Plan{Tier: Indie, Overage: true})
	for _, test := range []struct {
		name   string
		given  []step
		when   step
		events string
	}{
		{"its own take the place of the installation's", []step{set("11-02", 25, 90)}, use("11-03", 60), "25% by 11-03"},
		{"what is reached is announced when it is set", []step{use("11-02", 60)}, set("11-03", 55, 60, 61), "55% by decision/1; 60% by decision/1"},
		{"what lies below what was announced is not", []step{use("11-02", 85)}, set("11-03", 70, 90), ""},
		{"none are announced where there are none", []step{set("11-02")}, use("11-03", 85), ""},
		{"those of the installation come back, but for what was announced", []step{set("11-02", 60), use("11-03", 85)},
			decide("11-04", ThresholdsSet{}), "80% by decision/2"},
		{"one above 100 is of overage", []step{soft, set("11-02", 120), use("11-03", 119)}, use("11-04", 1), "120% by 11-04"},
		{"of the next period they start over", []step{set("11-02", 10), use("11-03", 10), advance("12-01")}, use("12-02", 10), "10% by 12-02"},
		{"they are those of budgets as well", []step{allow("11-02", shop, 50, 0), send("11-03", 20)}, set("11-04", 40), "project:shop 40%"},
	} {
		books := newBooks(Indie)
		books.Organization.ClosedThrough = date("11-01")
		perform(t, books, test.given...)
		books.Events = nil
		perform(t, books, test.when)
		if got := join(describeEvents(books.Events), describeBudgetEvents(books.Events)); got != test.events {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, test.events)
		}
	}
}

// Organizations without their own use the installation's thresholds;
// invalid ones are refused.
func TestWhichThresholds(t *testing.T) {
	books := newBooks(Indie)
	books.Organization.Usual = Thresholds{30}
	perform(t, books, use("11-02", 55))
	if got := describeEvents(books.Events); got != "30% by 11-02" {
		t.Errorf("the installation's: %s", got)
	}
	for _, percents := range []Thresholds{{0}, {1001}, {50, 50}, {80, 50}, slices.Repeat(Thresholds{1}, 11)} {
		if decisions, err := percents.DecideFor(books.Organization); err == nil {
			t.Errorf("%v are decided: %v", percents, decisions)
		}
	}
	for _, test := range []struct {
		own, wanted Thresholds
		decided     int
	}{{nil, nil, 0}, {nil, Thresholds{}, 1}, {Thresholds{}, nil, 1}, {Thresholds{5}, Thresholds{5}, 0}, {Thresholds{5}, Thresholds{5, 6}, 1}} {
		books.Organization.Thresholds = test.own
		if decisions, err := test.wanted.DecideFor(books.Organization); err != nil || len(decisions) != test.decided {
			t.Errorf("%v after %v: %v, %v", test.wanted, test.own, decisions, err)
		}
	}
}

// join joins two lists, either of which may be empty.
func join(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}
