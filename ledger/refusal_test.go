package ledger

import (
	"testing"
	"time"

	"github.com/weirlog/weir/shared/contract"
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
			if err != nil {
				t.Fatal(err)
			}
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
