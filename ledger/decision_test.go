package ledger

import (
	"reflect"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
	"github.com/weirlog/weir/shared/testenv"
)

// date parses an instant of the tests' year, such as 11-16 or 11-16T06.
func date(text string) time.Time {
	for _, layout := range []string{"2006-01-02", "2006-01-02T15", "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, "2026-"+text); err == nil {
			return at
		}
	}
	panic("no date: " + text)
}

func decide(at string, d Decision) step {
	return func(b *Books) error { return b.Decide(d, b.DecisionCause(date(at))) }
}

func advance(through string) step { return decide(through, Advanced{Through: date(through)}) }

// to subscribes to a plan at once or from a later instant on.
func to(at, from string, plan Plan) step {
	plan.From = date(from)
	return decide(at, PlanChanged{Plan: seeded(plan)})
}

// give adds a grant of now, changed by form.
func give(at, id string, amount int64, form ...func(*Grant)) step {
	grant := Grant{ID: id, Amount: amount, Priority: PlanPriority, Starts: date(at), Created: date(at), Source: FromBilling}
	for _, change := range form {
		change(&grant)
	}
	return decide(at, Granted{Grant: grant})
}

func priority(n int) func(*Grant)     { return func(g *Grant) { g.Priority = n } }
func starts(at string) func(*Grant)   { return func(g *Grant) { g.Starts = date(at) } }
func expires(at string) func(*Grant)  { return func(g *Grant) { g.Expires = date(at) } }
func rollover(cap int64) func(*Grant) { return func(g *Grant) { g.RolloverCap = &cap } }

// use is a charge of November or later, such as 11-16T06.
func use(at string, bytes int64) step {
	return func(b *Books) error {
		return b.Charge(Charge{Organization: "acme", Bytes: bytes, Entries: 1, Cause: Cause{Event: at, At: date(at)}})
	}
}

// owe is an adjustment that charges.
func owe(at string, bytes int64) step { return decide(at, Adjusted{ID: "owed", Bytes: -bytes}) }

// Given a plan of 100 bytes a period since January, when something is
// decided or due, then these transfers and events follow.
func TestDecisions(t *testing.T) {
	tests := []struct {
		name      string
		given     []step
		when      step
		transfers string
		events    string
	}{
		{"an upgrade allows the rest of the period pro rata", []step{use("11-02", 10)}, to("11-16", "11-16", Plan{Tier: Scale}),
			"11 issuer>grant 150 prorated", "indie>scale"},
		{"what it allows is rounded up to a byte", []step{use("11-02", 10)}, to("11-30T23:59:59", "11-30T23:59:59", Plan{Tier: Indie, Quota: 101}),
			"11 issuer>grant 1 prorated", ""},
		{"an upgrade in the first instant is the whole plan", nil, to("11-01", "11-01", Plan{Tier: Scale}),
			"11 issuer>grant 100 issued; 11 issuer>grant 300 prorated", "indie>scale"},
		{"an upgrade restores what was exhausted", []step{use("11-02", 100)}, to("11-16", "11-16", Plan{Tier: Scale}),
			"11 issuer>grant 150 prorated", "restored; indie>scale"},
		{"an upgrade covers what was beyond the allowance", []step{use("11-02", 100), owe("11-02", 30)}, to("11-16", "11-16", Plan{Tier: Scale}),
			"11 issuer>grant 150 prorated; 11 overage>issuer 30 settled; 11 grant>consumed 30 settled", "restored; indie>scale"},
		{"going up, and up again, is as much as going there at once", []step{use("11-02", 10), to("11-16", "11-16", Plan{Tier: Indie, Quota: 200})},
			to("11-16", "11-16", Plan{Tier: Scale}), "11 issuer>grant 100 prorated", "indie>scale"},
		{"a smaller plan takes nothing back", []step{use("11-02", 10)}, to("11-16", "11-16", Plan{Tier: Indie, Quota: 50}), "", ""},
		{"a downgrade waits for the period's end", []step{use("11-02", 10), to("11-16", "12-01", Plan{Tier: Indie, Quota: 50})}, advance("12-01"),
			"11 grant>expired 90 expired; 12 issuer>grant 50 issued", "11 closed"},
		{"a scheduled tier is announced when it begins", []step{use("11-02", 10), to("11-16", "12-01", Plan{Tier: Scale})}, advance("12-01"),
			"11 grant>expired 90 expired; 12 issuer>grant 400 issued", "11 closed; indie>scale"},
		{"what is cancelled does not begin", []step{use("11-02", 10), to("11-16", "12-01", Plan{Tier: Scale}), decide("11-17", ChangeCancelled{})},
			advance("12-01"), "11 grant>expired 90 expired; 12 issuer>grant 100 issued", "11 closed"},
		{"a change takes the place of what was scheduled",
			[]step{use("11-02", 10), to("11-16", "12-01", Plan{Tier: Scale}), to("11-17", "11-17", Plan{Tier: Indie, RequestsPerMinute: 7})},
			advance("12-01"), "11 grant>expired 90 expired; 12 issuer>grant 100 issued", "11 closed"},

		{"a grant is used behind the plan", []step{use("11-02", 90), give("11-03", "g", 50)}, use("11-04", 30),
			"11 grant>consumed 10 charged; 11 credit>consumed 20 charged g", ""},
		{"a grant of a lower priority is used before the plan", []step{use("11-02", 90), give("11-03", "g", 50, priority(1))}, use("11-04", 30),
			"11 credit>consumed 30 charged g", ""},
		{"a grant that expires before the period does is used before the plan", []step{use("11-02", 90), give("11-03", "g", 50, expires("11-20"))},
			use("11-04", 30), "11 credit>consumed 30 charged g", ""},
		{"of equal priority the one that expires first is used first",
			[]step{use("11-02", 100), give("11-03", "never", 50), give("11-03", "late", 50, expires("12-20")), give("11-03", "soon", 50, expires("12-19"))},
			use("11-04", 110), "11 credit>consumed 50 charged soon; 11 credit>consumed 50 charged late; 11 credit>consumed 10 charged never", ""},
		{"of equal expiry the oldest is used first", []step{use("11-02", 100), give("11-03", "old", 50), give("11-04", "new", 50)}, use("11-05", 60),
			"11 credit>consumed 50 charged old; 11 credit>consumed 10 charged new", ""},
		{"of those given at one instant the first is used first",
			[]step{use("11-02", 100), give("11-03", "b", 50), give("11-03", "a", 50)}, use("11-05", 60),
			"11 credit>consumed 50 charged b; 11 credit>consumed 10 charged a", ""},
		{"a grant restores, and covers what was beyond the allowance", []step{use("11-02", 100), owe("11-02", 30)}, give("11-03", "g", 50),
			"11 issuer>credit 50 issued g; 11 overage>issuer 30 settled; 11 credit>consumed 30 settled g", "restored"},
		{"a grant restores and covers no overshoot", []step{use("11-02", 130)}, give("11-03", "g", 50), "11 issuer>credit 50 issued g", "restored"},
		{"an upgrade restores and covers no overshoot", []step{use("11-02", 130)}, to("11-16", "11-16", Plan{Tier: Scale}),
			"11 issuer>grant 150 prorated", "restored; indie>scale"},
		{"overshoot is by the last plan of the period, whenever it was accepted",
			[]step{to("11-02", "11-02", Plan{Tier: Indie, Overage: true}), use("11-03", 120), to("11-04", "11-04", Plan{Tier: Indie})}, use("11-03T12", 5),
			"11 issuer>overshoot 5 charged", ""},
		{"an adjustment beyond the allowance is owed by any plan", []step{use("11-02", 130)}, owe("11-03", 7), "11 issuer>overage 7 adjusted", "adjusted by -7"},
		{"the last byte of a grant exhausts", []step{use("11-02", 100), give("11-03", "g", 50)}, use("11-04", 50),
			"11 credit>consumed 50 charged g", "exhausted by 11-04"},
		{"what was accepted at the instant of an expiry is not covered", []step{use("11-02", 100), give("11-03", "g", 50, expires("11-20"))}, use("11-20", 5),
			"11 issuer>overshoot 5 charged", ""},
		{"what was accepted just before is", []step{use("11-02", 100), give("11-03", "g", 50, expires("11-20"))}, use("11-19T23:59:59", 5),
			"11 credit>consumed 5 charged g", ""},
		{"what comes before a grant starts is not covered", []step{use("11-02", 100), give("11-03", "g", 50, starts("11-10"))}, use("11-09", 5),
			"11 issuer>overshoot 5 charged", ""},
		{"a grant starts by itself, for who sends nothing too", []step{give("11-03", "g", 50, starts("11-10"))}, advance("11-10"),
			"11 issuer>grant 100 issued; 11 issuer>credit 50 issued g", ""},
		{"a backdated grant covers what was accepted since and comes now", []step{use("11-02", 100), give("11-05", "g", 50, starts("11-03"))},
			use("11-04", 5), "11 credit>consumed 5 charged g", ""},
		{"a grant expires by itself, and exhausts", []step{use("11-02", 100), give("11-03", "g", 50, expires("11-05"))}, advance("11-05"),
			"11 credit>expired 50 expired g", "exhausted by decision/2/1793836800000000; g expired"},
		{"what expires may reach thresholds", []step{use("11-02", 10), give("11-03", "g", 150, expires("11-05")), use("11-04", 100)}, advance("11-05"),
			"11 credit>expired 50 expired g", "50% by decision/2/1793836800000000; g expired"},
		{"that it will is announced a week before", []step{use("11-02", 10), give("11-03", "g", 50, expires("11-20"))}, advance("11-13"), "", "g expires soon"},
		{"a grant that is used up does not expire", []step{use("11-02", 100), give("11-03", "g", 50, expires("11-20")), use("11-04", 50)}, advance("11-20"), "", ""},
		{"a grant outlives the period", []step{use("11-02", 10), give("11-03", "g", 50)}, advance("12-01"),
			"11 grant>expired 90 expired; 12 issuer>grant 100 issued", "11 closed"},
		{"no more of it than it may carry over", []step{use("11-02", 10), give("11-03", "g", 50, rollover(20))}, advance("12-01"),
			"11 grant>expired 90 expired; 11 credit>expired 30 expired g; 12 issuer>grant 100 issued", "11 closed"},
		{"nothing of it where that is nothing", []step{use("11-02", 10), give("11-03", "g", 50, rollover(0))}, advance("12-01"),
			"11 grant>expired 90 expired; 11 credit>expired 50 expired g; 12 issuer>grant 100 issued", "11 closed"},
		{"what is used behind the end is part of what it carries over",
			[]step{use("11-02", 10), give("11-03", "g", 50, priority(1), rollover(20)), use("12-01T00:00:30", 15)},
			advance("12-01"), "11 grant>expired 90 expired; 11 credit>expired 30 expired g", "11 closed"},
		{"all that is left of it goes where more was used behind the end",
			[]step{use("11-02", 10), give("11-03", "g", 50, priority(1), rollover(20)), use("12-01T00:00:30", 45)},
			advance("12-01"), "11 grant>expired 90 expired; 11 credit>expired 5 expired g", "11 closed"},
		{"a grant of the new period loses nothing when the old one is closed later", []step{use("11-02", 10), give("12-01T00:00:30", "g", 50, rollover(0))},
			advance("12-01"), "11 grant>expired 90 expired", "11 closed"},
		{"of what the next period has open already, too, late use of a grant exhausts it",
			[]step{use("11-02", 100), give("11-03", "g", 50), use("12-01T00:00:10", 100)}, use("11-30T23:59:59", 50),
			"11 credit>consumed 50 charged g", "exhausted by 11-30T23:59:59; 80% by 11-30T23:59:59; 100% by 11-30T23:59:59; exhausted by 11-30T23:59:59"},
		{"so does a cap at the end of the one before",
			[]step{use("11-02", 10), give("11-03", "g", 50, rollover(0)), use("12-01T00:00:10", 100)}, advance("12-01"),
			"11 grant>expired 90 expired; 11 credit>expired 50 expired g",
			"80% by decision/2/1796083200000000; 100% by decision/2/1796083200000000; exhausted by decision/2/1796083200000000; 11 closed"},
		{"a voided grant is taken back", []step{use("11-02", 100), give("11-03", "g", 50), use("11-04", 20)}, decide("11-05", Revoked{Grant: "g"}),
			"11 credit>voided 30 voided g", "exhausted by decision/2"},
		{"one that has not started leaves no trace in the books", []step{use("11-02", 10), give("11-03", "g", 50, starts("11-10"))},
			decide("11-05", Revoked{Grant: "g"}), "", ""},

		{"a soft limit accepts and charges overage", []step{to("11-02", "11-02", Plan{Tier: Indie, Overage: true, OverageCap: 20}), use("11-03", 100)},
			use("11-04", 5), "11 issuer>overage 5 charged", "overage"},
		{"at its cap it is exhausted", []step{to("11-02", "11-02", Plan{Tier: Indie, Overage: true, OverageCap: 20}), use("11-03", 100), use("11-04", 19)},
			use("11-05", 1), "11 issuer>overage 1 charged", "exhausted by 11-05"},
		{"what was accepted beyond its cap is overshoot", []step{to("11-02", "11-02", Plan{Tier: Indie, Overage: true, OverageCap: 20}), use("11-03", 90)},
			use("11-04", 45), "11 grant>consumed 10 charged; 11 issuer>overage 20 charged; 11 issuer>overshoot 15 charged", "100% by 11-04; overage; exhausted by 11-04"},
		{"without one it never is", []step{to("11-02", "11-02", Plan{Tier: Indie, Overage: true}), use("11-03", 100)}, use("11-04", 1<<30),
			"11 issuer>overage 1073741824 charged", "overage"},
		{"a soft limit restores what a hard one had exhausted", []step{use("11-03", 100)}, to("11-04", "11-04", Plan{Tier: Indie, Overage: true}), "", "restored"},
		{"a larger soft limit restores as well", []step{use("11-02", 100)}, to("11-16", "11-16", Plan{Tier: Scale, Overage: true}),
			"11 issuer>grant 150 prorated", "restored; indie>scale"},
		{"a hard limit exhausts what was beyond the allowance", []step{to("11-02", "11-02", Plan{Tier: Indie, Overage: true}), use("11-03", 120)},
			to("11-04", "11-04", Plan{Tier: Indie}), "", "exhausted by decision/2"},
		{"so does a cap", []step{to("11-02", "11-02", Plan{Tier: Indie, Overage: true}), use("11-03", 120)},
			to("11-04", "11-04", Plan{Tier: Indie, Overage: true, OverageCap: 20}), "", "exhausted by decision/2"},
		{"what comes late is overage by the plan of the open period",
			[]step{to("11-02", "12-01", Plan{Tier: Indie, Overage: true}), advance("12-01"), use("12-02", 100)},
			use("11-30", 5), "12 issuer>overage 5 late of 11", "overage; adjusted by -5"},
		{"instants of one second have facts of their own", []step{use("11-02", 100),
			give("11-03", "g", 1, starts("11-10"), expires("11-10T00:00:00.1")),
			give("11-03", "h", 1, starts("11-10T00:00:00.2"), expires("11-10T00:00:00.3"))}, advance("11-11"),
			"11 issuer>credit 1 issued g; 11 credit>expired 1 expired g; 11 issuer>credit 1 issued h; 11 credit>expired 1 expired h",
			"restored; exhausted by decision/3/1794268800100000; g expired; restored; exhausted by decision/3/1794268800300000; h expired"},
		{"who is suspended is charged for what was accepted before",
			[]step{use("11-02", 10), decide("11-03", SuspensionChanged{Suspended: true})}, use("11-02T12", 5),
			"11 grant>consumed 5 charged", ""},

		{"the next period restores", []step{use("11-02", 100)}, advance("12-01"), "12 issuer>grant 100 issued", "11 closed; restored"},
		{"periods end one after the other, for who sends nothing too", nil, advance("12-01"),
			"11 issuer>grant 100 issued; 11 grant>expired 100 expired; 12 issuer>grant 100 issued", "11 closed"},
		{"what comes late is booked in the open period, and names the closed one", []step{use("11-02", 10), advance("12-01")}, use("11-30", 5),
			"12 grant>consumed 5 late of 11", "adjusted by -5"},
		{"what comes late before that is booked in its own", []step{use("11-02", 10), use("12-01", 1)}, use("11-30", 5), "11 grant>consumed 5 charged", ""},
		{"an adjustment gives back, first of all to be used", []step{use("11-02", 100)}, decide("11-03", Adjusted{ID: "a", Bytes: 30, Of: date("10-01")}),
			"11 issuer>credit 30 adjusted a of 10", "restored; adjusted by 30"},
		{"or charges", []step{use("11-02", 10)}, decide("11-03", Adjusted{ID: "a", Bytes: -30, Of: date("10-01")}),
			"11 grant>consumed 30 adjusted of 10", "adjusted by -30"},
		{"what it gives back goes with the period", []step{use("11-02", 10), decide("11-03", Adjusted{ID: "a", Bytes: 30})}, advance("12-01"),
			"11 credit>expired 30 expired a; 11 grant>expired 90 expired; 12 issuer>grant 100 issued", "a expired; 11 closed"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			books := newBooks(Indie)
			books.Organization.ClosedThrough = date("11-01")
			follow(t, books, test.given, test.when, test.transfers, test.events)
		})
	}
}

// Periods of an anchor day end by the calendar: on a leap day, and in
// months that lack the day.
func TestPeriodsEndOnTheirAnchor(t *testing.T) {
	for _, test := range []struct {
		anchor   int
		from, to string
		closed   []string // ends
	}{
		{31, "2028-01-31", "2028-04-30", []string{"2028-02-29", "2028-03-31", "2028-04-30"}},
		{29, "2027-01-29", "2027-03-29", []string{"2027-02-28", "2027-03-29"}},
		{1, "2028-02-01", "2028-03-01", []string{"2028-03-01"}},
	} {
		from, to := at(t, test.from+"T00:00:00Z"), at(t, test.to+"T00:00:00Z")
		organization := Organization{ID: "acme", Anchoring: Anchoring{AnchorDay: test.anchor}, Plans: Plans{seeded(Plan{From: from, Tier: Indie})}, ClosedThrough: from}
		books := OpenBooks(organization, nil)
		testenv.Must(t, books.Decide(Advanced{Through: to}, books.DecisionCause(to)))
		var closed []string
		for _, event := range books.Events {
			if event.Kind == PeriodClosed {
				closed = append(closed, event.Book.Period.End.Format(time.DateOnly))
			}
		}
		if len(closed) != len(test.closed) {
			t.Fatalf("anchor %d: closed %v, want %v", test.anchor, closed, test.closed)
		}
		for i, end := range test.closed {
			if closed[i] != end {
				t.Errorf("anchor %d: closed %v, want %v", test.anchor, closed, test.closed)
			}
		}
	}
}

// A ledger rebuilt in November has logs since the end of October. It
// publishes only whole periods, and books nothing in earlier ones.
func TestPeriodsOfBeforeAreNotPublished(t *testing.T) {
	organization := Organization{ID: "acme", Anchoring: Anchoring{AnchorDay: 1}, Opened: date("11-03")}
	books := OpenBooks(organization, nil)
	perform(t, books, startPlan("2026-03-05T00:00:00Z", Indie))
	perform(t, books, use("10-28", 7), use("11-02", 9), advance("11-03"))
	if got, want := describe(books.Transfers), "11 issuer>grant 100 issued; 10 issuer>grant 100 issued; 10 grant>consumed 7 charged; "+
		"11 grant>consumed 9 charged; 10 grant>expired 93 expired"; got != want {
		t.Errorf("transfers\n got %s\nwant %s", got, want)
	}
	perform(t, books, use("11-20", 5), advance("12-01"))
	if got := describeEvents(books.Events); got != "" {
		t.Errorf("events %s", got)
	}
	perform(t, books, use("12-02", 7), advance("12-31"))
	testenv.Must(t, books.Decide(Advanced{Through: date("12-01").AddDate(0, 1, 0)}, books.DecisionCause(date("12-31"))))
	if got := describeEvents(books.Events); got != "12 closed" {
		t.Errorf("events %s", got)
	}
}

// A timeline is bounded: the oldest plans go, except the first, which
// dates the organization.
func TestPlansAreBounded(t *testing.T) {
	plans := Plans{{From: date("01-01"), Tier: Indie}}
	for i := range 3 * maxPlans {
		at := date("02-01").Add(time.Duration(i) * time.Hour)
		plans = plans.Then(Plan{From: at, Tier: Indie, Quota: int64(i + 1)}, at)
	}
	last := plans[len(plans)-1]
	if len(plans) != maxPlans || !plans[0].From.Equal(date("01-01")) || last.Quota != 3*maxPlans {
		t.Errorf("%d plans, from %v to %v", len(plans), plans[0], last)
	}
}

// The next due time is the period's end, unless a grant comes first.
func TestDue(t *testing.T) {
	november := calendar.PeriodAt(date("11-01"), 1)
	for name, test := range map[string]struct {
		given []step
		want  time.Time
	}{
		"a period ends":              {nil, november.End},
		"a grant starts":             {[]step{give("11-03", "g", 1, starts("11-10"))}, date("11-10")},
		"a grant is about to expire": {[]step{give("11-03", "g", 1, expires("11-20"))}, date("11-13")},
		"a grant expires":            {[]step{give("11-03", "g", 1, expires("11-20")), advance("11-13")}, date("11-20")},
		"a short one expires":        {[]step{give("11-03", "g", 1, expires("11-05"))}, date("11-05")},
		"one that is used up":        {[]step{give("11-03", "g", 1, priority(1), expires("11-05")), use("11-04", 1)}, november.End},
		"one that never expires":     {[]step{give("11-03", "g", 1)}, november.End},
		"one that was voided":        {[]step{give("11-03", "g", 1, starts("11-10")), decide("11-04", Revoked{Grant: "g"})}, november.End},
	} {
		books := newBooks(Indie)
		books.Organization.ClosedThrough = november.Start
		perform(t, books, test.given...)
		if due := books.Due(); !due.Equal(test.want) {
			t.Errorf("%s: due %s, want %s", name, due, test.want)
		}
	}
}

// notStanding are the fields of an organization that charges change, that
// the decision has itself, or that are its place in the chain.
var notStanding = map[string]bool{
	".Pool": true, ".Decisions": true, ".DecidedAt": true, ".Head": true, ".Statements": true, ".Stated": true,
}

// Every other field of an organization is in its standing: a new one has
// to be added.
func TestStandingHasAllThatIsDecided(t *testing.T) {
	at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	o := Organization{
		ID: "acme", Anchoring: Anchoring{AnchorDay: 1, Anchors: []Anchor{{From: at, Day: 2}}}, Plans: Plans{{From: at, Tier: Indie}},
		Thresholds: Thresholds{80}, Usual: Thresholds{50}, Opened: at, Clock: at, ClosedThrough: at,
	}
	budgets := []Budget{{Spender: Spender{Project: "shop"}, Bytes: 1, Since: 1}}
	was := StandingOf(o, budgets)
	changeEach(reflect.ValueOf(&o).Elem(), "", func(path string) {
		if is := StandingOf(o, budgets); (is == was) != notStanding[path] {
			t.Errorf("with another %s the standing is %x, was %x", path, is, was)
		}
	})
	for name, change := range map[string]func(b *Budget){
		"spender": func(b *Budget) { b.Project = "store" }, "bytes": func(b *Budget) { b.Bytes++ }, "since": func(b *Budget) { b.Since++ },
	} {
		changed := budgets[0]
		change(&changed)
		if StandingOf(o, []Budget{changed}) == was {
			t.Errorf("with another %s of a budget the standing is the same", name)
		}
	}
	if StandingOf(o, nil) == was {
		t.Error("without its budget the standing is the same")
	}
}

// changeEach changes one field at a time, also of structs and the first of
// slices, calls check and changes it back.
func changeEach(v reflect.Value, path string, check func(path string)) {
	was := reflect.New(v.Type()).Elem()
	was.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		if at, is := v.Interface().(time.Time); is {
			v.Set(reflect.ValueOf(at.Add(time.Hour)))
			break
		}
		for i := range v.NumField() {
			changeEach(v.Field(i), path+"."+v.Type().Field(i).Name, check)
		}
		return
	case reflect.Slice:
		changeEach(v.Index(0), path, check)
		v.Set(reflect.Zero(v.Type()))
	case reflect.Array:
		v.Index(0).SetUint(v.Index(0).Uint() + 1)
	case reflect.String:
		v.SetString(v.String() + "x")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	default:
		v.SetInt(v.Int() + 1)
	}
	check(path)
	v.Set(was)
}
