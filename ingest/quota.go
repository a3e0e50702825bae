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

	account Account
	known   bool
	marker  Positions // applied accounts count everything below

	uncertain int64 // bytes under way, or of unknown outcome
	published []published
	doubtful  []doubtful
	oldest    time.Time // when the first of these was accepted; zero: there are none

	since    time.Time // start of a period, and
	counting spent     // what is published that was accepted since

	spentPeriod time.Time // the period whose limit did not cover a request,
	spentLimit  int64     // and that limit
}

// published is a request in the log that the ledger counts only
// with its last record.
type published struct {
	at         time.Time // when it was accepted: the ledger counts it in the period of that time
	oldest     time.Time // oldest acceptance merged into it
	partition  int
	offset     int64
	bytes      int64
	repeatable bool // the ledger may have charged it already
}

// spent are bytes in the log.
type spent struct {
	all        int64
	repeatable int64 // of these, what the ledger may have charged already
}

func (s *spent) add(p published) {
	s.all += p.bytes
	if p.repeatable {
		s.repeatable += p.bytes
	}
}

// sure are bytes that the ledger will charge.
func (s *spent) sure() int64 { return s.all - s.repeatable }

// A doubtful request may be in the log or not.
type doubtful struct {
	at     time.Time // latest acceptance
	oldest time.Time
	bytes  int64
	since  time.Time
	fence  Positions // the end of the log to check; nil: not read yet
}

// A Reservation is what one request holds of a quota while it is
// published. It ends once: published, released or lost.
type Reservation struct {
	At            time.Time
	Bytes         int64
	RetentionDays int // for which the request's entries are kept

	repeatable bool // the request may repeat a charged one
}

// maxPublished bounds the published requests, and the doubtful ones,
// that a Quota keeps apart. Beyond it some are counted with a later
// one, which errs toward refusal.
const maxPublished = 1024

// Apply applies an account and reports whether it is newer.
func (q *Quota) Apply(account Account) bool {
	if q.known && account.Version < q.account.Version {
		return false
	}
	if q.account.Since != account.Since {
		q.spentLimit = 0
	}
	q.account, q.known = account, true
	if q.spentPeriod.Equal(account.Period.Start) {
		q.spentLimit = min(q.spentLimit, account.Limit) // any later raise then counts
	}
	q.settle()
	return true
}

// Mark sets the positions up to which the applied accounts count.
func (q *Quota) Mark(marker Positions) {
	q.marker = marker
	q.settle()
}

// Check returns, before a request's size is known, whether any quota is left.
func (q *Quota) Check(now time.Time) Verdict {
	switch {
	case !q.known:
		return Unknown
	case q.account.Suspended:
		return Suspended
	}
	period, limit, used := q.current(now)
	switch spent := q.spentIn(period); {
	case q.account.Exhausted && period.Start.Equal(q.account.Period.Start), q.isSpent(period, limit), used+spent.sure() >= limit:
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
		period, limit, _ := q.current(now)
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
	period, limit, used := q.current(now)
	switch spent := q.spentIn(period); {
	case bytes > limit-used-spent.sure():
		return Reservation{}, Exhausted
	case bytes > limit-used-spent.all-q.uncertain, q.Replicas.overShare(limit-used, spent.all+q.uncertain, bytes):
		return Reservation{}, Contended
	}
	q.uncertain += bytes
	return Reservation{At: now, Bytes: bytes, RetentionDays: q.account.RetentionDays, repeatable: repeatable}, Admitted
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
	q.age(r.At)
	if len(q.doubtful) < maxPublished {
		q.doubtful = append(q.doubtful, doubtful{at: r.At, oldest: r.At, bytes: r.Bytes, since: now})
		return
	}
	last := &q.doubtful[maxPublished-1] // resolved with the latest
	last.bytes += r.Bytes
	last.at, last.oldest = calendar.Later(last.at, r.At), calendar.Earlier(last.oldest, r.At)
	last.since, last.fence = now, nil
}

// Incomplete reports whether a request lost before an instant is unresolved.
func (q *Quota) Incomplete(before time.Time) bool {
	for _, d := range q.doubtful {
		if d.fence == nil && d.since.Before(before) {
			return true
		}
	}
	return false
}

// Resolve records that requests lost before an instant are below ends
// if they are in the log. Once the ledger has counted that far, the
// account has them or they are nowhere.
func (q *Quota) Resolve(before time.Time, ends Positions) {
	for i, d := range q.doubtful {
		if d.fence == nil && d.since.Before(before) {
			q.doubtful[i].fence = ends
		}
	}
	q.settle()
}

// Found records a request in the log, accepted at a time, that the
// ledger may not have counted. It may repeat a charged one.
func (q *Quota) Found(at time.Time, bytes int64, partition int, offset int64) {
	q.count(published{at: at, partition: partition, offset: offset, bytes: bytes, repeatable: true})
}

func (q *Quota) count(found published) {
	if q.counted(found) {
		return
	}
	if !found.at.Before(q.since) {
		q.counting.add(found)
	}
	q.age(found.at)
	found.oldest = found.at
	if len(q.published) < maxPublished || !q.merge(found) {
		q.published = append(q.published, found)
	}
}

// merge adds found to one of the same partition, period and charge.
func (q *Quota) merge(found published) bool {
	for i := range q.published {
		p := &q.published[i]
		if p.partition == found.partition && p.repeatable == found.repeatable && p.at.Before(q.since) == found.at.Before(q.since) {
			if p.bytes += found.bytes; found.at.After(p.at) {
				p.at = found.at
			}
			if found.at.Before(p.oldest) {
				p.oldest = found.at
			}
			p.offset = max(p.offset, found.offset)
			return true
		}
	}
	return false
}

// Status returns the quota for the organization.
func (q *Quota) Status(now time.Time) QuotaStatus {
	period, limit, used := q.current(now)
	used += q.spentIn(period).all
	status := QuotaStatus{Limit: limit, Used: used, Remaining: max(0, limit-used), ResetsAt: period.End, Period: period.End.Sub(period.Start)}
	if period.Start.Equal(q.account.Period.Start) {
		status.Since = q.account.Since
	}
	if !q.oldest.IsZero() {
		status.Lag = max(0, now.Sub(q.oldest))
	}
	return status
}

// age records the acceptance of an uncounted request.
func (q *Quota) age(accepted time.Time) {
	if q.oldest.IsZero() || accepted.Before(q.oldest) {
		q.oldest = accepted
	}
}

// current returns the present period, its limit and the ledger's count.
// A period that the ledger has not opened starts by itself.
func (q *Quota) current(now time.Time) (period calendar.Period, limit, used int64) {
	if now.Before(q.account.Period.End) {
		return q.account.Period, q.account.Limit, q.account.Used
	}
	return calendar.PeriodAt(now, q.account.AnchorDay), q.account.NextLimit, 0
}

// isSpent reports whether the period's limit refused a request and was
// not raised since.
func (q *Quota) isSpent(period calendar.Period, limit int64) bool {
	return q.spentLimit > 0 && limit <= q.spentLimit && q.spentPeriod.Equal(period.Start)
}

// spentIn returns the published bytes accepted in period or later.
func (q *Quota) spentIn(period calendar.Period) *spent {
	if !period.Start.Equal(q.since) {
		q.since = period.Start
		q.addUp()
	}
	return &q.counting
}

func (q *Quota) addUp() {
	q.counting = spent{}
	for _, p := range q.published {
		if !p.at.Before(q.since) {
			q.counting.add(p)
		}
	}
}

// isCounted reports whether the account counts a request accepted at a
// time, if reached holds for its positions. An earlier period's account
// doesn't count it.
func (q *Quota) isCounted(at time.Time, reached func(Positions) bool) bool {
	return q.known && at.Before(q.account.Period.End) && (reached(q.account.Counted) || reached(q.marker))
}

func (q *Quota) counted(p published) bool {
	return q.isCounted(p.at, func(counted Positions) bool { return counted.Covers(p.partition, p.offset) })
}

func (q *Quota) resolved(d doubtful) bool {
	return d.fence != nil && q.isCounted(d.at, func(counted Positions) bool { return counted.reach(d.fence) })
}

// settle drops what the ledger has counted.
func (q *Quota) settle() {
	q.published = slices.DeleteFunc(q.published, q.counted)
	q.doubtful = slices.DeleteFunc(q.doubtful, func(d doubtful) bool {
		resolved := q.resolved(d)
		if resolved {
			q.uncertain -= d.bytes
		}
		return resolved
	})
	q.addUp()
	q.findOldest()
}

func (q *Quota) findOldest() {
	q.oldest = time.Time{}
	for _, p := range q.published {
		q.age(p.oldest)
	}
	for _, d := range q.doubtful {
		q.age(d.oldest)
	}
}
