package ingest

import "time"

// A Spender has a budget: one project or one API key. The zero Spender
// is the whole organization.
type Spender struct{ Project, Key string }

// A Budget is how much of each period a spender may use, as published
// by the ledger.
type Budget struct {
	Spender
	Limit     int64 // bytes
	Used      int64 // bytes counted in the account's period
	Exhausted bool
	Since     int64 // changes when the budget is raised or set again
}

// A BudgetStatus is a budget that refuses a request, as this process has it.
type BudgetStatus struct {
	Spender
	QuotaStatus
}

// Of returns the account of a budget: the organization's with other limits.
func (a Account) Of(b Budget) Account {
	a.Limit, a.NextLimit, a.Used, a.Exhausted, a.Suspended, a.Budgets, a.Since = b.Limit, b.Limit, b.Used, b.Exhausted, false, nil, b.Since
	return a
}

// Budgets are the quotas of an organization's spenders. Like a Quota
// they are not safe for concurrent use. The zero value has none.
type Budgets struct {
	bySpender map[Spender]*Quota // bounded by what the ledger publishes
	replicas  Replicas
}

// Apply applies the budgets of a newer account. A new one starts with
// the ledger's count.
func (b *Budgets) Apply(account Account, marker Positions) {
	if len(account.Budgets) == 0 {
		b.bySpender = nil
		return
	}
	bySpender := make(map[Spender]*Quota, len(account.Budgets))
	for _, of := range account.Budgets {
		known := b.bySpender[of.Spender]
		if known == nil {
			known = &Quota{ledger: ledger{marker: marker}, Replicas: b.replicas}
		}
		known.Apply(account.Of(of))
		bySpender[of.Spender] = known
	}
	b.bySpender = bySpender
}

// of returns the budgets in which a request counts: at most two.
func (b *Budgets) of(project, key string) (found [2]spending, n int) {
	if len(b.bySpender) == 0 {
		return found, 0
	}
	for _, spender := range [...]Spender{{Project: project}, {Key: key}} {
		if of := b.bySpender[spender]; of != nil && spender != (Spender{}) {
			found[n] = spending{spender: spender, quota: of}
			n++
		}
	}
	return found, n
}

// Check returns, before a request's size is known, an exhausted budget;
// nil: none.
func (b *Budgets) Check(project, key string, now time.Time) *BudgetStatus {
	found, n := b.of(project, key)
	for _, s := range found[:n] {
		if s.quota.Check(now) == Exhausted {
			return s.status(now)
		}
	}
	return nil
}

// A spending is what a request reserves of one budget.
type spending struct {
	spender Spender
	quota   *Quota
	held    Reservation
}

func (s spending) status(now time.Time) *BudgetStatus {
	return &BudgetStatus{Spender: s.spender, QuotaStatus: s.quota.Status(now)}
}

// A BudgetReservation is what one request reserves of its budgets, if any.
type BudgetReservation []spending

// A Reserve is (*Quota).Reserve or (*Quota).Try.
type Reserve func(q *Quota, now time.Time, bytes int64) (Reservation, Verdict)

// Reserve admits a request in all its budgets, or returns the verdict
// and the refusing budget, if it is one.
func (b *Budgets) Reserve(project, key string, now time.Time, bytes int64, ask Reserve) (BudgetReservation, Verdict, *BudgetStatus) {
	found, n := b.of(project, key)
	if n == 0 {
		return nil, Admitted, nil
	}
	held := make(BudgetReservation, 0, n)
	for _, s := range found[:n] {
		var verdict Verdict
		if s.held, verdict = ask(s.quota, now, bytes); verdict != Admitted {
			held.Release()
			return nil, verdict, s.status(now)
		}
		held = append(held, s)
	}
	return held, Admitted, nil
}

// Published reports that the request is in the log, with its
// last record at a position.
func (r BudgetReservation) Published(partition int, offset int64) {
	for _, s := range r {
		s.quota.Published(s.held, partition, offset)
	}
}

// Release reports that the request is certainly not whole in the log.
func (r BudgetReservation) Release() {
	for _, s := range r {
		s.quota.Release(s.held)
	}
}

// Lost records that the request may be in the log or not.
func (r BudgetReservation) Lost(now time.Time) {
	for _, s := range r {
		s.quota.Lost(s.held, now)
	}
}

// Mark sets the positions up to which the applied accounts count.
func (b *Budgets) Mark(marker Positions) {
	for _, quota := range b.bySpender {
		quota.Mark(marker)
	}
}

// Found reports a request in the log that the ledger may not have counted.
func (b *Budgets) Found(c Charge) {
	found, n := b.of(c.Project, c.Key)
	for _, s := range found[:n] {
		s.quota.Found(c.At, c.Bytes, c.Partition, c.Offset)
	}
}

// Incomplete reports whether a request lost before an instant is unresolved.
func (b *Budgets) Incomplete(before time.Time) bool {
	for _, quota := range b.bySpender {
		if quota.Incomplete(before) {
			return true
		}
	}
	return false
}

// Resolve records that requests lost before an instant are below ends
// if they are in the log.
func (b *Budgets) Resolve(before time.Time, ends Positions) {
	for _, quota := range b.bySpender {
		quota.Resolve(before, ends)
	}
}

// shareDivisor makes a replica's share of what is left a quarter of an
// even one. Of R bytes that are left all shares are R/4, and when only
// they are uncounted, at least R/2 is left: so uncounted bytes stay below
// half of what is left while the ledger counts requests in their order.
const shareDivisor = 4

// Replicas is how many replicas admit requests, this one included; at
// most 1: it is alone.
type Replicas int

// overShare reports whether bytes more are beyond a replica's share of
// what the ledger has left: others may have used up the rest. A first
// uncounted request needs no share, or a large one would never pass.
func (n Replicas) overShare(left, uncounted, bytes int64) bool {
	return n > 1 && uncounted > 0 && uncounted+bytes > left/(shareDivisor*int64(n))
}

// Divide sets how many replicas admit requests by the budgets.
func (b *Budgets) Divide(replicas Replicas) {
	b.replicas = replicas
	for _, quota := range b.bySpender {
		quota.Replicas = replicas
	}
}
