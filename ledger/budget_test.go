package ledger

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

var shop, key = Spender{Project: "shop"}, Spender{Key: "k"}

// allow sets a budget whose spender has used so much.
func allow(at string, of Spender, bytes, used int64) step {
	return decide(at, BudgetsChanged{Set: []BudgetSet{{Spender: of, Bytes: bytes, Used: used}}})
}

// send is a charge of key k of project shop.
func send(at string, bytes int64) step {
	return func(b *Books) error {
		return b.Charge(Charge{Organization: "acme", Bytes: bytes, Entries: 1, Cause: Cause{Event: at, At: date(at), Project: "shop", Key: "k"}})
	}
}

// overBudget is a refusal by a replica that has a budget of so many bytes.
func overBudget(at string, of Spender, bytes int64) step { return overBudgetSince(at, of, bytes, 0) }

// overBudgetSince is a refusal by a replica that has the budget's last raise.
func overBudgetSince(at string, of Spender, bytes, since int64) step {
	return func(b *Books) error {
		cause := Cause{Event: at, Source: FromOutcomes, At: date(at)}
		return b.Refuse(&Refusal{Spender: of, Reason: "of it", Quota: bytes, PeriodStart: b.Organization.PeriodAt(cause.At).Start, Latch: Latch{Since: since}, Exhausts: true, Cause: cause})
	}
}

func describeBudgets(b *Books) string {
	var lines []string
	for _, budget := range b.Budgets.Kept {
		line := fmt.Sprintf("%s %d of %d", budget.Spender, budget.Used, budget.Bytes)
		if budget.IsExhausted() {
			line += " out"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func describeBudgetEvents(events []Event) string {
	var lines []string
	for _, e := range events {
		switch e.Kind {
		case BudgetThresholdReached:
			lines = append(lines, fmt.Sprintf("%s %d%%", e.Budget.Spender, e.Percent))
		case BudgetExhausted:
			lines = append(lines, e.Budget.Spender.String()+" exhausted")
		case BudgetRestored:
			lines = append(lines, e.Budget.Spender.String()+" restored")
		}
	}
	return strings.Join(lines, "; ")
}

// Given a plan of 100 bytes a period, when something happens, then
// budgets have this use and these events follow.
func TestBudgets(t *testing.T) {
	for _, test := range []struct {
		name    string
		given   []step
		when    step
		budgets string
		events  string
	}{
		{"a budget begins with what was used before it", nil, allow("11-02", shop, 50, 20), "project:shop 20 of 50", ""},
		{"one that is used up by then is exhausted", nil, allow("11-02", shop, 20, 20), "project:shop 20 of 20 out",
			"project:shop 50%; project:shop 80%; project:shop 100%; project:shop exhausted"},
		{"a charge counts in the budgets of its project and its key", []step{allow("11-02", shop, 50, 0), allow("11-02", key, 40, 0)}, send("11-03", 20),
			"project:shop 20 of 50; key:k 20 of 40", "key:k 50%"},
		{"one of others does not", []step{allow("11-02", Spender{Project: "other"}, 50, 0), allow("11-02", Spender{Key: "other"}, 50, 0)}, send("11-03", 20),
			"project:other 0 of 50; key:other 0 of 50", ""},
		{"one without a project or key counts in none", []step{allow("11-02", shop, 50, 0), allow("11-02", key, 50, 0)}, use("11-03", 20),
			"project:shop 0 of 50; key:k 0 of 50", ""},
		{"the last byte exhausts", []step{allow("11-02", shop, 50, 45)}, send("11-03", 5), "project:shop 50 of 50 out", "project:shop 100%; project:shop exhausted"},
		{"so does a refusal", []step{allow("11-02", shop, 50, 20)}, overBudget("11-03", shop, 50), "project:shop 20 of 50 out", "project:shop exhausted"},
		{"a second one changes nothing", []step{allow("11-02", shop, 50, 20), overBudget("11-03", shop, 50)}, overBudget("11-04", shop, 50),
			"project:shop 20 of 50 out", ""},
		{"that of a replica which had not read of a larger budget changes nothing", []step{allow("11-02", shop, 50, 20), allow("11-03", shop, 60, 0)},
			overBudget("11-04", shop, 50), "project:shop 20 of 60", ""},
		{"that of another budget changes nothing", []step{allow("11-02", shop, 50, 20)}, overBudget("11-03", key, 50), "project:shop 20 of 50", ""},
		{"that of a period that is over changes nothing", []step{allow("11-02", shop, 50, 20), send("12-01", 1)}, overBudget("11-30", shop, 50),
			"project:shop 1 of 50", ""},
		{"a larger budget restores", []step{allow("11-02", shop, 50, 50)}, allow("11-03", shop, 51, 0), "project:shop 50 of 51", "project:shop restored"},
		{"also what a refusal exhausted", []step{allow("11-02", shop, 50, 20), overBudget("11-03", shop, 50)}, allow("11-04", shop, 51, 0),
			"project:shop 20 of 51", "project:shop restored"},
		{"a smaller one does not", []step{allow("11-02", shop, 50, 20), overBudget("11-03", shop, 50)}, allow("11-04", shop, 40, 0),
			"project:shop 20 of 40 out", "project:shop 50%"},
		{"any raise of that does", []step{allow("11-02", shop, 50, 20), overBudget("11-03", shop, 50), allow("11-04", shop, 40, 0)}, allow("11-05", shop, 41, 0),
			"project:shop 20 of 41", "project:shop restored"},
		{"that of before it was raised and lowered to the same again changes nothing", []step{allow("11-02", shop, 50, 20), allow("11-03", shop, 60, 0),
			allow("11-04", shop, 50, 0)}, overBudgetSince("11-05", shop, 50, 1), "project:shop 20 of 50", ""},
		{"that of behind it exhausts", []step{allow("11-02", shop, 50, 20), allow("11-03", shop, 60, 0), allow("11-04", shop, 50, 0)},
			overBudgetSince("11-05", shop, 50, 2), "project:shop 20 of 50 out", "project:shop exhausted"},
		{"raised, it stays restored where it is lowered again", []step{allow("11-02", shop, 50, 20), overBudget("11-03", shop, 50), allow("11-04", shop, 60, 0)},
			allow("11-05", shop, 50, 0), "project:shop 20 of 50", ""},
		{"a smaller one exhausts by what was used", []step{allow("11-02", shop, 100, 20)}, allow("11-03", shop, 20, 0), "project:shop 20 of 20 out",
			"project:shop 50%; project:shop 80%; project:shop 100%; project:shop exhausted"},
		{"a threshold is announced once in a period", []step{allow("11-02", shop, 50, 30), allow("11-03", shop, 100, 0)}, send("11-04", 20),
			"project:shop 50 of 100", ""},
		{"a removed budget is none", []step{allow("11-02", shop, 50, 50)}, decide("11-03", BudgetsChanged{Removed: []Spender{shop}}), "", ""},
		{"a period's end starts it over, for who sends nothing too", []step{allow("11-02", shop, 50, 50)}, advance("12-01"), "project:shop 0 of 50",
			"project:shop restored"},
		{"so does the first charge of the next period, before that is closed", []step{allow("11-02", shop, 50, 50)}, send("12-01", 30),
			"project:shop 30 of 50", "project:shop restored; project:shop 50%"},
		{"but once", []step{allow("11-02", shop, 50, 50), send("12-01", 1)}, advance("12-01"), "project:shop 1 of 50", ""},
		{"what was accepted in a period that is over is no part of the next", []step{allow("11-02", shop, 50, 0), advance("12-01")}, send("11-30", 20),
			"project:shop 0 of 50", ""},
		{"a suspended organization's budgets count what was accepted before", []step{allow("11-02", shop, 50, 0), decide("11-03", SuspensionChanged{true})},
			send("11-02T23", 20), "project:shop 20 of 50", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			books := newBooks(Indie)
			books.Organization.ClosedThrough = date("11-01")
			perform(t, books, test.given...)
			books.Events = nil
			perform(t, books, test.when)
			if got := describeBudgets(books); got != test.budgets {
				t.Errorf("budgets\n got %s\nwant %s", got, test.budgets)
			}
			if got := describeBudgetEvents(books.Events); got != test.events {
				t.Errorf("events\n got %s\nwant %s", got, test.events)
			}
		})
	}
}

// Invalid budgets are refused; unchanged ones need no decision.
func TestBudgetSpecs(t *testing.T) {
	full := newBooks(Indie)
	for i := range MaxBudgets {
		perform(t, full, allow("11-02", Spender{Project: fmt.Sprint("p", i)}, 1, 0))
	}
	if _, err := full.Budgets.Set(BudgetSpec{shop, 1}, 0); !errors.As(err, new(LimitReached)) {
		t.Errorf("one budget too many: %v", err)
	}
	if decisions, err := full.Budgets.Set(BudgetSpec{Spender{Project: "p7"}, 2}, 0); err != nil || len(decisions) != 1 {
		t.Errorf("another one of a full organization: %v, %v", decisions, err)
	}
	b := newBooks(Indie)
	perform(t, b, allow("11-02", shop, 50, 0))
	for name, spec := range map[string]BudgetSpec{
		"nobody's": {Spender{}, 1}, "of both": {Spender{"p", "k"}, 1}, "of nothing": {shop, 0}, "of too much": {shop, MaxGrant + 1},
		"of no id": {Spender{Project: "a b"}, 1}, "of a long id": {Spender{Key: strings.Repeat("k", 65)}, 1},
	} {
		if _, err := b.Budgets.Set(spec, 0); !errors.As(err, new(Invalid)) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := b.Budgets.SetAll([]BudgetSpec{spec}, []int64{0}); !errors.As(err, new(Invalid)) {
			t.Errorf("%s among others: %v", name, err)
		}
	}
	if _, err := b.Budgets.SetAll([]BudgetSpec{{key, 1}, {key, 2}}, []int64{0, 0}); !errors.As(err, new(Invalid)) {
		t.Errorf("one key twice: %v", err)
	}
	if decisions, err := b.Budgets.Set(BudgetSpec{shop, 50}, 7); err != nil || len(decisions) > 0 {
		t.Errorf("the same again: %v, %v", decisions, err)
	}
	if decisions, err := b.Budgets.Remove(key); err != nil || len(decisions) > 0 {
		t.Errorf("one that there is not: %v, %v", decisions, err)
	}
	decisions, err := b.Budgets.SetAll([]BudgetSpec{{key, 9}}, []int64{4})
	if err != nil || !reflect.DeepEqual(decisions, []Decision{BudgetsChanged{Set: []BudgetSet{{Spender: key, Bytes: 9, Used: 4}}, Removed: []Spender{shop}}}) {
		t.Errorf("others instead: %v, %v", decisions, err)
	}
}
