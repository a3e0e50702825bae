package ledger

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv"
)

// refuse is a refusal by a replica with an allowance and no count of raises.
func refuse(when string, quota int64) step { return refuseSince(when, quota, 0) }

// refuseSince is a refusal by a replica that has so many raises.
func refuseSince(when string, quota, raises int64) step {
	return func(b *Books) error {
		at := causeAt(when, FromOutcomes)
		return b.Refuse(&Refusal{Organization: "acme", Bytes: 50, Quota: quota, PeriodStart: time.Date(2026, at.At.Month(), 1, 0, 0, 0, 0, time.UTC),
			Latch: Latch{Since: raises}, Exhausts: true, Requests: 1, Cause: at})
	}
}

// raise grants more in the period of an instant.
func raise(when string, bytes int64) step {
	return func(b *Books) error {
		cause := causeAt(when, FromOutcomes)
		book, err := b.touch(cause.At, cause)
		if err == nil {
			b.post(book, cause, book.issue(bytes, Issued)...)
		}
		return err
	}
}

// closed closes the periods that ended by then.
func closed(by string) step {
	return func(b *Books) error {
		b.Organization.ClosedThrough = date(by)
		return nil
	}
}

// An allowance that refused a request is exhausted until it is raised
// or the next period, which is announced once. An outdated refusal
// changes nothing.
func TestRefusalExhausts(t *testing.T) {
	const november, later, december = "2026-11-10T00:00:00Z", "2026-11-11T00:00:00Z", "2026-12-01T00:00:00Z"
	for _, c := range []struct {
		name      string
		given     []step
		at        string // of which period
		want      string
		exhausted int // how often it was announced
	}{
		{"refused", []step{charge(november, 72), refuse(november, 100)}, later, Exhausted, 1},
		{"refused twice", []step{charge(november, 72), refuse(november, 100), refuse(later, 100)}, later, Exhausted, 1},
		{"the first of its period", []step{refuse(november, 100)}, later, Exhausted, 1},
		{"used up behind it", []step{refuse(november, 100), charge(later, 100)}, later, Exhausted, 1},
		{"used up before it", []step{charge(november, 100), refuse(later, 100)}, later, Exhausted, 1},
		{"raised since", []step{charge(november, 72), refuse(november, 100), raise(later, 1)}, later, Active, 1},
		{"refused again", []step{refuse(november, 100), raise(november, 10), refuse(later, 110)}, later, Exhausted, 2},
		{"a stale replica after it was raised", []step{charge(november, 72), raise(november, 10), refuse(later, 100)}, later, Active, 0},
		{"a stale replica that knew of more", []step{charge(november, 72), refuse(november, 500)}, later, Exhausted, 1},
		{"the next period", []step{charge(november, 72), refuse(november, 100)}, december, Active, 1},
		{"lowered, and raised by less", []step{give("11-02", "g", 50), refuse(november, 150), decide("11-10T01", Revoked{Grant: "g"}), raise(later, 1)}, later, Active, 1},
		{"raised, and lowered to the same again", []step{refuse(november, 100), give("11-10T01", "g", 50), decide("11-10T02", Revoked{Grant: "g"})}, later, Active, 1},
		{"before it was raised and lowered again, but read later", []step{charge(november, 72), give("11-10T01", "g", 50), decide("11-10T02", Revoked{Grant: "g"}),
			refuseSince(later, 100, 1)}, later, Active, 0},
		{"behind that", []step{charge(november, 72), give("11-10T01", "g", 50), decide("11-10T02", Revoked{Grant: "g"}), refuseSince(later, 100, 2)}, later, Exhausted, 1},
		{"a plan with a larger cap, and one with the cap of before", []step{to("11-02", "11-02", Plan{Tier: Indie, Overage: true, OverageCap: 20}), refuse(november, 120),
			to("11-10T01", "11-10T01", Plan{Tier: Indie, Overage: true, OverageCap: 30}), to("11-10T02", "11-10T02", Plan{Tier: Indie, Overage: true, OverageCap: 20}),
			refuseSince(later, 120, 2)}, later, Active, 1},
		{"charged late under a plan of then that allowed less", []step{to("11-02", "12-01", Plan{Tier: Indie, Overage: true, OverageCap: 20}),
			closed("12-01"), refuse("2026-12-02T00:00:00Z", 120), use("11-30", 5)}, "2026-12-03T00:00:00Z", Exhausted, 1},
		{"of another period than it claims", []step{func(b *Books) error {
			return b.Refuse(&Refusal{Organization: "acme", Quota: 100, PeriodStart: time.Date(2026, 11, 5, 0, 0, 0, 0, time.UTC), Exhausts: true,
				Cause: causeAt(november, FromOutcomes)})
		}}, later, Active, 0},
		{"a suspended one", []step{func(b *Books) error {
			return b.Refuse(&Refusal{Organization: "acme", Quota: 100, PeriodStart: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Exhausts: true,
				Reason: contract.ReasonSuspended, Cause: causeAt(november, FromOutcomes)})
		}}, later, Active, 0},
		{"one that may be repeated", []step{func(b *Books) error {
			return b.Refuse(&Refusal{Organization: "acme", Quota: 100, PeriodStart: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Cause: causeAt(november, FromOutcomes)})
		}}, later, Active, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBooks(Indie)
			perform(t, b, c.given...)
			book, err := b.At(at(t, c.at))
			testenv.Must(t, err)
			if got := b.Organization.State(book, at(t, c.at)); got != c.want {
				t.Errorf("%s, want %s: %+v", got, c.want, book)
			}
			announced := 0
			for _, event := range b.Events {
				if event.Kind == QuotaExhausted {
					announced++
				}
			}
			if announced != c.exhausted {
				t.Errorf("announced %d times, want %d: %+v", announced, c.exhausted, b.Events)
			}
		})
	}
}

// A provisional organization has no allowance to exhaust.
func TestRefusalOfAProvisionalOrganization(t *testing.T) {
	b := newBooks("")
	perform(t, b, refuse("2026-11-10T00:00:00Z", 100))
	if len(b.Events)+len(b.Transfers) > 0 || len(b.All()) > 0 {
		t.Errorf("%+v", b)
	}
}

// A refusal ends with a grant of the missing bytes, or a tier whose
// difference for the rest of the period covers them.
func TestResolution(t *testing.T) {
	tiers := Tiers{Indie: {Quota: 100}, Bootstrapper: {Quota: 200}, Compliance: {Quota: 700}, Scale: {Quota: 1300}}
	indie, scale := Plan{Tier: Indie, TierTerms: tiers[Indie]}, Plan{Tier: Scale, TierTerms: tiers[Scale]}
	larger := Plan{Tier: Indie, Quota: 650, TierTerms: tiers[Indie]}
	for name, c := range map[string]struct {
		plan                   Plan
		at                     string
		limit, bytes, leftOver int64
		want                   string
	}{
		"at the beginning":       {indie, "2026-11-01T00:00:00Z", 100, 50, 20, "{30 [bootstrapper compliance scale]}"},
		"half of it is left":     {indie, "2026-11-16T00:00:00Z", 100, 70, 10, "{60 [compliance scale]}"},
		"the difference just is": {indie, "2026-11-16T00:00:00Z", 100, 60, 10, "{50 [bootstrapper compliance scale]}"},
		"rounded up":             {indie, "2026-11-30T23:59:59Z", 100, 11, 10, "{1 [bootstrapper compliance scale]}"},
		"too late":               {indie, "2026-11-30T23:59:59Z", 100, 70, 10, "{60 []}"},
		"of the largest":         {scale, "2026-11-01T00:00:00Z", 1300, 70, 10, "{60 []}"},
		"small, and exhausted":   {indie, "2026-11-01T00:00:00Z", 100, 5, 20, "{1 [bootstrapper compliance scale]}"},
		"raised in mid-month":    {scale, "2026-11-18T00:00:00Z", 700, 70, 10, "{60 []}"},
		"with grants":            {indie, "2026-11-16T00:00:00Z", 1450, 70, 10, "{60 [compliance scale]}"},
		"of a quota of its own":  {larger, "2026-11-16T00:00:00Z", 650, 70, 10, "{60 [scale]}"},
	} {
		o := Organization{ID: "acme", Anchoring: Anchoring{AnchorDay: 1}, Plans: Plans{c.plan}}
		refusal := Refusal{Quota: c.limit, Bytes: c.bytes, Remaining: c.leftOver, Cause: Cause{At: at(t, c.at)}}
		if got := tiers.Resolution(o, refusal); fmt.Sprint(got) != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
}

// An upgrade to a resolution's tier has the request accepted; a byte more
// needs another resolution.
func TestResolutionIsWhatAnUpgradeDoes(t *testing.T) {
	for name, given := range map[string][]step{
		"with a grant":           {use("11-02", 10), give("11-03", "g", 350), use("11-17", 430)},
		"an overage cap":         {to("11-02", "11-02", Plan{Tier: Indie, Overage: true, OverageCap: 500}), use("11-17", 590)},
		"a quota of its own":     {to("11-16", "11-16", Plan{Tier: Indie, Quota: 250}), use("11-17", 150)},
		"after a new anchor day": {decide("10-15", AnchorSet{Anchor{From: date("11-01"), Day: 25}}), use("11-17", 30)},
	} {
		books := newBooks(Indie)
		perform(t, books, given...)
		plan, accepted := books.Organization.Plans.At(date("11-18")), admitted(t, books)
		plan.Tier, plan.Quota = Scale, 0
		perform(t, books, to("11-18", "11-18", plan))
		for more, want := range map[int64]bool{0: true, 1: false} {
			before := newBooks(Indie)
			perform(t, before, given...)
			book, _ := before.At(date("11-18"))
			resolution := smallTiers().ResolutionOf(before.Organization, book, admitted(t, books)+more, date("11-18"))
			if named := len(resolution.Tiers) > 0; named != want || admitted(t, books) <= accepted {
				t.Errorf("%s, %d bytes more than the upgrade covers: %v", name, more, resolution)
			}
		}
	}
}

// admitted returns what is accepted on 18 November.
func admitted(t *testing.T, b *Books) int64 {
	t.Helper()
	book, err := b.At(date("11-18"))
	testenv.Must(t, err)
	return b.Organization.Admits(book, date("11-18"))
}
