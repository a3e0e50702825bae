package ledger

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// anchored sets an anchor day from the end of the running period on.
func anchored(at string, day int) step {
	return func(b *Books) error {
		decisions, err := smallRules().Subscribe(b.Organization, Subscription{Plan: b.Organization.Plans.At(date(at)), AnchorDay: &day}, date(at))
		for _, decision := range decisions {
			if err == nil {
				err = b.Decide(decision, b.DecisionCause(date(at)))
			}
		}
		return err
	}
}

// Given a plan of 100 bytes a period on the first of each month, when
// another day is set and time passes, then these periods close with
// these allowances.
func TestAnchorDays(t *testing.T) {
	for _, test := range []struct {
		name    string
		given   []step
		through string
		periods string
	}{
		{"none is set", nil, "2027-01-01", "2026-11-01 100; 2026-12-01 100"},
		{"the same", []step{anchored("11-02", 1)}, "2027-01-01", "2026-11-01 100; 2026-12-01 100"},
		{"the 15th: the part until then has its part of the quota", []step{anchored("11-02", 15)}, "2027-01-15", "2026-11-01 100; 2026-12-01 47; 2026-12-15 100"},
		{"the 31st: a shorter month has its last day", []step{anchored("11-02", 31)}, "2027-03-31",
			"2026-11-01 100; 2026-12-01 97; 2026-12-31 100; 2027-01-31 100; 2027-02-28 100"},
		{"the 31st, across a leap day", []step{anchored("11-02", 31), advance("12-31")}, "2028-03-31", "… 2028-01-31 100; 2028-02-29 100"},
		{"the 29th, on a leap day", []step{anchored("11-02", 29)}, "2028-03-29", "… 2028-01-29 100; 2028-02-29 100"},
		{"another before it is in force", []step{anchored("11-02", 15), anchored("11-03", 20)}, "2026-12-20", "2026-11-01 100; 2026-12-01 64"},
		{"back before it is in force", []step{anchored("11-02", 15), anchored("11-03", 1)}, "2027-01-01", "2026-11-01 100; 2026-12-01 100"},
		{"another in a part", []step{anchored("11-02", 15), advance("12-01"), anchored("12-02", 20)}, "2027-01-20",
			"2026-11-01 100; 2026-12-01 47; 2026-12-15 17; 2026-12-20 100"},
		{"an upgrade in a part has the part of a whole period", []step{anchored("11-02", 15), advance("12-01"), to("12-08", "12-08", Plan{Tier: Scale})},
			"2027-01-15", "2026-11-01 100; 2026-12-01 117; 2026-12-15 400"},
	} {
		books := newBooks(Indie)
		books.Organization.ClosedThrough = date("11-01")
		perform(t, books, test.given...)
		end := at(t, test.through+"T00:00:00Z")
		testenv.Must(t, books.Decide(Advanced{Through: end}, books.DecisionCause(end)))
		var periods []string
		for _, event := range books.Events {
			if event.Kind == PeriodClosed {
				periods = append(periods, fmt.Sprintf("%s %d", event.Book.Period.Start.Format("2006-01-02"), event.Book.Granted()))
			}
		}
		got, want := strings.Join(periods, "; "), test.periods
		if rest, found := strings.CutPrefix(want, "… "); found && strings.HasSuffix(got, rest) {
			continue
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", test.name, got, want)
		}
	}
	for _, day := range []int{0, 32, -1} {
		if err := anchored("11-02", day)(newBooks(Indie)); err == nil {
			t.Errorf("day %d is taken", day)
		}
	}
}
