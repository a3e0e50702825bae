package ledger

import (
	"fmt"
	"testing"
)

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
	if err != nil {
		t.Fatal(err)
	}
	return b.Organization.Admits(book, date("11-18"))
}
