package ingest_test

import (
	"testing"
	"time"

	"github.com/weirlog/weir/ingest"
)

var (
	november = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	december = time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
)

func account(limit, used int64) ingest.Account {
	return ingest.Account{
		Period: ingest.Period{Start: november, End: december}, AnchorDay: 1, Limit: limit, NextLimit: limit, Used: used, Version: 1,
	}
}

func newQuota(a ingest.Account) *ingest.Quota {
	q := &ingest.Quota{}
	q.Apply(a)
	return q
}

// A request passes while the remaining quota covers it; the first that it does not cover exhausts it for all, until a
// grant or the next period.
func TestQuotaExhausts(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(100, 60))
	r, verdict := q.Reserve(now, 40)
	if verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	q.Published(r, 40, 0, 5)
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

// What is under way never exhausts a quota: it may still fail.
func TestQuotaContended(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(100, 0))
	if _, verdict := q.Reserve(now, 80); verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
	if _, verdict := q.Reserve(now, 40); verdict != ingest.Contended {
		t.Fatal(verdict)
	}
	q.Release(80)
	if _, verdict := q.Reserve(now, 40); verdict != ingest.Admitted {
		t.Fatal(verdict)
	}
}

// Nothing is admitted for an organization that the ledger does not know or has suspended.
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

// Bytes of unknown fate count until the ledger has passed the end that the log had after they were given up.
func TestQuotaResolvesDoubt(t *testing.T) {
	now := november.Add(time.Hour)
	q := newQuota(account(100, 0))
	r, _ := q.Reserve(now, 80)
	q.Lost(r, 80, now)
	q.Mark(ingest.Positions{0: 100, 1: 100})
	if _, verdict := q.Reserve(now, 40); verdict != ingest.Contended {
		t.Fatalf("before it is resolved: %v", verdict)
	}
	if !q.Doubts(now.Add(time.Second)) {
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

// Periods follow the anchor day, in short months its last day.
func TestPeriodAt(t *testing.T) {
	for _, c := range []struct {
		at         string
		anchor     int
		start, end string
	}{
		{"2026-11-21T04:00:00Z", 1, "2026-11-01", "2026-12-01"},
		{"2026-12-01T00:00:00Z", 1, "2026-12-01", "2027-01-01"},
		{"2026-02-27T23:59:59Z", 31, "2026-01-31", "2026-02-28"},
		{"2026-02-28T00:00:00Z", 31, "2026-02-28", "2026-03-31"},
		{"2024-02-29T00:00:00Z", 30, "2024-02-29", "2024-03-30"},
		{"2026-01-01T00:00:00Z", 15, "2025-12-15", "2026-01-15"},
	} {
		at, _ := time.Parse(time.RFC3339, c.at)
		p := ingest.PeriodAt(at, c.anchor)
		if got := p.Start.Format(time.DateOnly) + " " + p.End.Format(time.DateOnly); got != c.start+" "+c.end || !p.Contains(at) {
			t.Errorf("%s with anchor %d: got %s", c.at, c.anchor, got)
		}
	}
}
