package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// A Refusal is a request refused by quota, with the number of equal ones.
type Refusal struct {
	Organization string
	Environment  string
	Reason       string  // empty: the quota is exhausted
	Spender      Spender // whose budget refused it; zero: none
	Bytes        int64
	Remaining    int64 // of the quota or the budget, as ingest had it
	Quota        int64 // or budget of the period, as ingest had it
	Latch
	PeriodStart time.Time
	Exhausts    bool // ingest refuses everything until the quota is raised
	Requests    int64
	Cause       Cause // Event is the id of the request
}

// A Latch is what a refusal exhausts until it is raised.
type Latch struct {
	Since   int64 // the book's Raises or the budget's Since: as ingest had them, and once it exhausts it, as the ledger has; 0: neither
	Refused int64 // the allowance or budget; 0: none, it is not booked or changes nothing
}

// Validate refuses what no request can cause.
func (r Refusal) Validate() error {
	switch {
	case r.Organization == "" || r.Cause.Event == "":
		return fmt.Errorf("cannot book the refusal of request %q of organization %q", r.Cause.Event, r.Organization)
	case r.Requests < 1 || r.Bytes < 0 || r.Remaining < 0 || r.Quota < 0:
		return fmt.Errorf("cannot book the refusal of request %q: %d requests of %d bytes, %d left of %d", r.Cause.Event, r.Requests, r.Bytes, r.Remaining, r.Quota)
	case r.Cause.At.Year() < FirstYear || r.Cause.At.Year() > LastYear:
		return fmt.Errorf("cannot book the refusal of request %q: refused at %s", r.Cause.Event, r.Cause.At)
	}
	return nil
}

// outdated reports whether the limit was raised since the refusal: its
// size may be the same again.
func (r Refusal) outdated(since int64) bool { return r.Since > 0 && r.Since < since }

// Refuse exhausts the period for every replica until its allowance
// exceeds the refused one, and notes so in the refusal. An outdated
// refusal, or one for another reason, changes nothing.
func (b *Books) Refuse(r *Refusal) error {
	switch {
	case !r.Exhausts || b.Organization.Provisional() || b.Organization.isClosed(r.Cause.At):
		return nil
	case r.Spender != Spender{}:
		r.exhaustBudget(b)
		return nil
	case r.Reason != "":
		return nil
	}
	if period := b.Organization.PeriodAt(r.Cause.At); !period.Start.Equal(r.PeriodStart) {
		return nil // the period has changed since
	}
	b.lines = 0
	book, err := b.touch(r.Cause.At, r.Cause)
	if err != nil {
		return err
	}
	if r.outdated(book.Raises) {
		return nil
	}
	before, wasOut := *book, b.isExhausted(book, r.Cause.At)
	r.Latch = Latch{book.Raises, min(r.Quota, b.withPool(book).limit(b.Organization.Plans.At(r.Cause.At)))}
	book.Refused = max(book.Refused, r.Refused)
	b.announce(book, before, wasOut, r.Cause)
	return nil
}

// A Resolution would have a refused request accepted in its period.
type Resolution struct {
	Grant int64  // bytes of the least grant that covers it
	Tiers []Tier // the upgrades that cover it, the smallest first
}

// Resolution returns what would end a refusal under the plan of its
// instant, whose other terms stay.
func (t Tiers) Resolution(o Organization, r Refusal) Resolution {
	resolution, plan := Resolution{Grant: max(1, r.Bytes-r.Remaining)}, o.Plans.At(r.Cause.At)
	for tier, terms := range t {
		if tier != plan.Tier && o.prorated(plan, Plan{TierTerms: terms}, r.Cause.At) >= resolution.Grant {
			resolution.Tiers = append(resolution.Tiers, tier)
		}
	}
	slices.SortFunc(resolution.Tiers, func(a, b Tier) int { return cmp.Or(cmp.Compare(t[a].Quota, t[b].Quota), cmp.Compare(a, b)) })
	return resolution
}
