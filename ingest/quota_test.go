package ingest_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/shared/contract/calendar"
)

var (
	november = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	december = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
)

func account(limit, used int64) ingest.Account {
	return ingest.Account{
		Period: calendar.Period{Start: november, End: december}, AnchorDay: 1, Limit: limit, NextLimit: limit, Used: used, Version: 1,
	}
}

func newQuota(a ingest.Account) *ingest.Quota {
	q := &ingest.Quota{}
	q.Apply(a)
	return q
}

// A request passes while the remaining quota covers it. The first that
// does not fit exhausts it until a grant or the next period.
func TestQuotaExhausts(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(100, 60))
	r, verdict := q.Reserve(now, 40)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	q.Published(r, 0, 5)
	if verdict := q.Check(now); verdict != ingest.Exhausted {
		t.Fatalf("full: %v", verdict)
	}

	q = newQuota(account(100, 60))
	if _, verdict := q.Reserve(now, 41); verdict != ingest.Exhausted {
		t.Fatalf("too large: %v", verdict)
	}
	if _, verdict := q.Reserve(now, 1); verdict != ingest.Exhausted {
		t.Fatalf("small one after it: %v", verdict)
	}
	granted := account(150, 60)
	granted.Version = 2
	q.Apply(granted)
	if _, verdict := q.Reserve(now, 41); verdict != ingest.Admitted {
		t.Fatalf("after a grant: %v", verdict)
	}
	if status := q.Status(december.Add(time.Second)); status.Used != 0 || status.Remaining != 150 && status.Remaining != 100 {
		t.Fatalf("next period: %+v", status)
	}
	if verdict := q.Check(december); verdict != ingest.Admitted {
		t.Fatalf("next period: %v", verdict)
	}
}

// An exhausted quota that was lowered is restored by any raise, even a small one.
func TestLoweredQuotaIsRestored(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(150, 60))
	if _, verdict := q.Reserve(now, 91); verdict != ingest.Exhausted {
		t.Fatalf("too large: %v", verdict)
	}
	lowered := account(100, 60)
	lowered.Version = 2
	q.Apply(lowered)
	if verdict := q.Check(now); verdict != ingest.Exhausted {
		t.Errorf("lowered: %v", verdict)
	}
	raised := account(120, 60)
	raised.Version = 3
	q.Apply(raised)
	if verdict := q.Check(now); verdict != ingest.Admitted {
		t.Errorf("raised: %v", verdict)
	}
}

// A raised quota is restored, even if it was lowered before or after,
// in one account.
func TestRaisedUnseenIsRestored(t *testing.T) {
	now := november.Add(time.Hour)
	refused := account(150, 60)
	refused.Since = 1
	q := newQuota(refused)
	if _, verdict := q.Reserve(now, 91); verdict != ingest.Exhausted {
		t.Fatalf("too large: %v", verdict)
	}
	again := refused
	again.Version = 2
	q.Apply(again)
	if verdict := q.Check(now); verdict != ingest.Exhausted {
		t.Errorf("the same account again: %v", verdict)
	}
	for since, limit := range map[int64]int64{2: 150, 3: 120} {
		restored := newQuota(refused)
		if _, verdict := restored.Reserve(now, 91); verdict != ingest.Exhausted {
			t.Fatalf("too large: %v", verdict)
		}
		raised := account(limit, 60)
		raised.Version, raised.Since = 3, since
		restored.Apply(raised)
		if verdict := restored.Check(now); verdict != ingest.Admitted {
			t.Errorf("raised meanwhile, and now %d bytes: %v", limit, verdict)
		}
		if status := restored.Status(now); status.Since != since || restored.Status(december).Since != 0 {
			t.Errorf("as of %d, and of the next period %d", status.Since, restored.Status(december).Since)
		}
	}
}

// Requests under way never exhaust a quota: they may still fail.
func TestQuotaContended(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(100, 0))
	r, verdict := q.Reserve(now, 80)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	if _, verdict := q.Reserve(now, 40); verdict != ingest.Contended {
		t.Fatal(verdict)
	}
	q.Release(r)
	if _, verdict := q.Reserve(now, 40); verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
}

// What may repeat a charged request exhausts no quota before the
// ledger has counted it: it may cost nothing.
func TestRepeatsExhaustNothing(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(100, 40))
	r, verdict := q.Try(now, 60)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	q.Published(r, 0, 5)
	if verdict := q.Check(now); verdict != ingest.Contended {
		t.Errorf("before the ledger has counted it: %v", verdict)
	}
	if _, verdict := q.Reserve(now, 1); verdict != ingest.Contended {
		t.Errorf("before the ledger has counted it: %v", verdict)
	}
	counted := account(100, 40)
	counted.Version, counted.Counted = 2, ingest.Positions{0: 6}
	q.Apply(counted)
	if _, verdict := q.Reserve(now, 60); verdict != ingest.Admitted {
		t.Errorf("it was a repeat: %v", verdict)
	}
}

// Nothing is admitted for an organization that has no account or is suspended.
func TestQuotaUnknownAndSuspended(t *testing.T) {
	if verdict := (&ingest.Quota{}).Check(november); verdict != ingest.Unknown {
		t.Fatal(verdict)
	}
	suspended := account(100, 0)
	suspended.Suspended = true
	if verdict := newQuota(suspended).Check(november); verdict != ingest.Suspended {
		t.Fatal(verdict)
	}
}

// Bytes of unknown outcome count until the ledger has passed the log's
// end of after they were given up.
func TestQuotaResolvesDoubt(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(100, 0))
	r, _ := q.Reserve(now, 80)
	q.Lost(r, now)
	q.Mark(ingest.Positions{0: 100, 1: 100})
	if _, verdict := q.Reserve(now, 40); verdict != ingest.Contended {
		t.Fatalf("before it is resolved: %v", verdict)
	}
	if !q.Incomplete(now.Add(time.Second)) {
		t.Fatal("no doubts")
	}
	q.Resolve(now.Add(time.Second), ingest.Positions{0: 100, 1: 120})
	if _, verdict := q.Reserve(now, 40); verdict != ingest.Contended {
		t.Fatalf("before it is counted: %v", verdict)
	}
	q.Mark(ingest.Positions{0: 100, 1: 120})
	if _, verdict := q.Reserve(now, 40); verdict != ingest.Admitted {
		t.Fatalf("after it is counted: %v", verdict)
	}
}

// Lost requests beyond the bound are kept together, and resolve with
// the last of them.
func TestQuotaKeepsFewDoubts(t *testing.T) {
	const lost, apart = 2000, 1024
	now := november.Add(time.Hour)
	q := newQuota(account(lost, 0))
	for i := range lost {
		r, _ := q.Reserve(now, 1)
		q.Lost(r, now.Add(time.Duration(i)*time.Millisecond))
	}
	left := func(want int64) {
		t.Helper()
		if _, verdict := q.Reserve(now, want+1); verdict == ingest.Admitted {
			t.Errorf("more than %d bytes are free", want)
		}
		r, verdict := q.Reserve(now, want)
		if verdict != ingest.Admitted {
			t.Errorf("%d bytes are not free: %v", want, verdict)
		}
		q.Release(r)
	}
	left(0)
	ends := ingest.Positions{0: 10}
	q.Resolve(now.Add(1500*time.Millisecond), ends)
	q.Mark(ends)
	left(apart - 1)
	q.Resolve(now.Add(time.Minute), ends)
	q.Mark(ends)
	if _, verdict := q.Reserve(now, lost); verdict != ingest.Admitted {
		t.Errorf("once all is counted: %v", verdict)
	}
}

// The lag is that of the oldest uncounted request, even one of unknown outcome.
func TestQuotaLag(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(100, 0))
	lag := func(want time.Duration) {
		t.Helper()
		if got := q.Status(now).Lag; got != want {
			t.Errorf("late by %s, want %s", got, want)
		}
	}
	lag(0)
	lost, _ := q.Reserve(now.Add(-time.Minute), 1)
	q.Lost(lost, now)
	q.Found(now.Add(-time.Second), 1, 0, 7)
	q.Found(now.Add(-2*time.Second), 1, 1, 7)
	lag(time.Minute)
	q.Resolve(now.Add(1), ingest.Positions{0: 5})
	q.Mark(ingest.Positions{0: 5})
	lag(2 * time.Second)
	q.Mark(ingest.Positions{0: 8, 1: 8})
	lag(0)
}

// Requests counted together are as old as the oldest.
func TestQuotaLagOfMany(t *testing.T) {
	now, q := november.Add(time.Hour), newQuota(account(1<<20, 0))
	const many = 2000 // more than are kept apart
	for i := range many {
		q.Found(now.Add(time.Duration(i-many)*time.Millisecond), 1, 0, int64(many+i))
	}
	q.Mark(ingest.Positions{0: many})
	if got, want := q.Status(now).Lag, many*time.Millisecond; got != want {
		t.Errorf("late by %s, want %s", got, want)
	}
}
