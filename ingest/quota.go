package ingest

import (
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// Positions maps a partition of the log to the next offset that is not yet counted.
type Positions map[int]int64

// Covers reports whether the record at offset of partition is counted.
func (p Positions) Covers(partition int, offset int64) bool { return offset < p[partition] }

// reach reports whether p is as far as q in every partition.
func (p Positions) reach(q Positions) bool {
	for partition, next := range q {
		if p[partition] < next {
			return false
		}
	}
	return true
}

// An Account is an organization's quota as published by the ledger.
type Account struct {
	Period        calendar.Period
	AnchorDay     int   // 1..31
	Limit         int64 // bytes for Period
	NextLimit     int64 // bytes for a period after it
	Used          int64 // bytes counted in Period
	Exhausted     bool
	Suspended     bool
	RetentionDays int       // of entries accepted now
	Counted       Positions // Used counts everything below
	Version       int64     // grows
	Since         int64     // changes when Limit is raised, even if it is lowered again
	Budgets       []Budget
}

// A Verdict reports whether a quota lets a request pass.
type Verdict int

// The verdicts.
const (
	Admitted  Verdict = iota
	Unknown           // no account of the organization yet
	Suspended         // the organization may not send anything
	Exhausted         // no request fits until a grant, an upgrade or the next period
	Contended         // depends on requests that the ledger has not counted
)

// A QuotaStatus is an organization's quota as this process has it.
type QuotaStatus struct {
	Limit, Used, Remaining int64 // bytes
	ResetsAt               time.Time
	Period                 time.Duration
	Since                  int64         // of the account; 0 in a period that the ledger has not opened
	Lag                    time.Duration // age of the oldest request that the ledger has not counted; 0: none
}

// A Quota decides which requests of one organization are admitted. It
// adds what this process has accepted since to the ledger's count, so
// one process never admits a byte too many, however far the ledger
// lags. Several processes do not know of each other's uncounted requests;
// near the quota's end each admits no more than its share of what is
// left, see Replicas. It is not safe for concurrent use.
type Quota struct {
	Replicas Replicas // among which it is divided

	ledger    ledger
	uncounted uncounted
	uncertain int64 // bytes under way, or of unknown outcome

	spentPeriod time.Time // the period whose limit did not cover a request,
	spentLimit  int64     // and that limit
}

// A ledger is what is known of the ledger's count.
type ledger struct {
	account Account
	known   bool
	marker  Positions // applied accounts count everything below
}

// current returns the present period, its limit and the ledger's count.
// A period that the ledger has not opened starts by itself.
func (l *ledger) current(now time.Time) (period calendar.Period, limit, used int64) {
	if now.Before(l.account.Period.End) {
		return l.account.Period, l.account.Limit, l.account.Used
	}
	return calendar.PeriodAt(now, l.account.AnchorDay), l.account.NextLimit, 0
}

// counts reports whether the account counts a request accepted at a
// time, if reached holds for its positions. An earlier period's account
// doesn't count it.
func (l *ledger) counts(at time.Time, reached func(Positions) bool) bool {
	return l.known && at.Before(l.account.Period.End) && (reached(l.account.Counted) || reached(l.marker))
}

// A Reservation is what one request holds of a quota while it is
// published. It ends once: published, released or lost.
type Reservation struct {
	At            time.Time
	Bytes         int64
	RetentionDays int // for which the request's entries are kept

	repeatable bool // the request may repeat a charged one
}

// Apply applies an account and reports whether it is newer.
func (q *Quota) Apply(account Account) bool {
	if q.ledger.known && account.Version < q.ledger.account.Version {
		return false
	}
	if q.ledger.account.Since != account.Since {
		q.spentLimit = 0
	}
	q.ledger.account, q.ledger.known = account, true
	if q.spentPeriod.Equal(account.Period.Start) {
		q.spentLimit = min(q.spentLimit, account.Limit) // any later raise then counts
	}
	q.settle()
	return true
}

// Mark sets the positions up to which the applied accounts count.
func (q *Quota) Mark(marker Positions) {
	q.ledger.marker = marker
	q.settle()
}

// Check returns, before a request's size is known, whether any quota is left.
func (q *Quota) Check(now time.Time) Verdict {
	switch {
	case !q.ledger.known:
		return Unknown
	case q.ledger.account.Suspended:
		return Suspended
	}
	period, limit, used := q.ledger.current(now)
	switch spent := q.uncounted.spentIn(period); {
	case q.ledger.account.Exhausted && period.Start.Equal(q.ledger.account.Period.Start), q.isSpent(period, limit), used+spent.sure() >= limit:
		return Exhausted
	case used+spent.all >= limit, q.Replicas.overShare(limit-used, spent.all+q.uncertain, 1):
		return Contended
	}
	return Admitted
}

// Reserve admits a request of a size or returns why not. The first
// request that does not fit exhausts the quota: later ones are refused
// whatever their size.
func (q *Quota) Reserve(now time.Time, bytes int64) (Reservation, Verdict) {
	before := q.Check(now)
	reservation, verdict := q.hold(now, bytes, false)
	if before == Admitted && verdict == Exhausted {
		period, limit, _ := q.ledger.current(now)
		q.spentPeriod, q.spentLimit = period.Start, limit
	}
	return reservation, verdict
}

// Try is Reserve for a request that may repeat a charged one and then
// costs nothing: its refusal exhausts nothing.
func (q *Quota) Try(now time.Time, bytes int64) (Reservation, Verdict) {
	return q.hold(now, bytes, true)
}

func (q *Quota) hold(now time.Time, bytes int64, repeatable bool) (Reservation, Verdict) {
	if verdict := q.Check(now); verdict != Admitted {
		return Reservation{}, verdict
	}
	period, limit, used := q.ledger.current(now)
	switch spent := q.uncounted.spentIn(period); {
	case bytes > limit-used-spent.sure():
		return Reservation{}, Exhausted
	case bytes > limit-used-spent.all-q.uncertain, q.Replicas.overShare(limit-used, spent.all+q.uncertain, bytes):
		return Reservation{}, Contended
	}
	q.uncertain += bytes
	return Reservation{At: now, Bytes: bytes, RetentionDays: q.ledger.account.RetentionDays, repeatable: repeatable}, Admitted
}

// Published records that the reservation's request is in the log, with
// its last record at a position.
func (q *Quota) Published(r Reservation, partition int, offset int64) {
	q.uncertain -= r.Bytes
	q.count(published{at: r.At, bytes: r.Bytes, partition: partition, offset: offset, repeatable: r.repeatable})
}

// Release records that the reservation's request is certainly not whole
// in the log.
func (q *Quota) Release(r Reservation) { q.uncertain -= r.Bytes }

// Lost records that the reservation's request may be in the log. It
// stays reserved until Resolve.
func (q *Quota) Lost(r Reservation, now time.Time) {
	q.uncounted.doubt(doubtful{at: r.At, oldest: r.At, bytes: r.Bytes, since: now})
}

// Incomplete reports whether a request lost before an instant is unresolved.
func (q *Quota) Incomplete(before time.Time) bool {
	return slices.ContainsFunc(q.uncounted.doubtful, func(d doubtful) bool { return d.lostBefore(before) })
}

// Resolve records that requests lost before an instant are below ends
// if they are in the log. Once the ledger has counted that far, the
// account has them or they are nowhere.
func (q *Quota) Resolve(before time.Time, ends Positions) {
	for i, d := range q.uncounted.doubtful {
		if d.lostBefore(before) {
			q.uncounted.doubtful[i].fence = ends
		}
	}
	q.settle()
}

// Found records a request in the log, accepted at a time, that the
// ledger may not have counted. It may repeat a charged one.
func (q *Quota) Found(at time.Time, bytes int64, partition int, offset int64) {
	q.count(published{at: at, partition: partition, offset: offset, bytes: bytes, repeatable: true})
}

// Status returns the quota for the organization.
func (q *Quota) Status(now time.Time) QuotaStatus {
	period, limit, used := q.ledger.current(now)
	used += q.uncounted.spentIn(period).all
	status := QuotaStatus{Limit: limit, Used: used, Remaining: max(0, limit-used), ResetsAt: period.End, Period: period.End.Sub(period.Start)}
	if period.Start.Equal(q.ledger.account.Period.Start) {
		status.Since = q.ledger.account.Since
	}
	if !q.uncounted.oldest.IsZero() {
		status.Lag = max(0, now.Sub(q.uncounted.oldest))
	}
	return status
}

// isSpent reports whether the period's limit refused a request and was
// not raised since.
func (q *Quota) isSpent(period calendar.Period, limit int64) bool {
	return q.spentLimit > 0 && limit <= q.spentLimit && q.spentPeriod.Equal(period.Start)
}

func (q *Quota) count(found published) {
	if !found.countedBy(&q.ledger) {
		q.uncounted.add(found)
	}
}

// settle drops what the ledger has counted.
func (q *Quota) settle() { q.uncertain -= q.uncounted.settle(&q.ledger) }
