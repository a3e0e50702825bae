package ingest

import "time"

// A Spender is who may have a budget: one project, or one API key. The zero
// Spender is the organization as a whole.
type Spender struct{ Project, Key string }

// A Budget is how much of each period a spender may use, as
// published by the ledger.
type Budget struct {
	Spender
	Limit     int64 // bytes
	Used      int64 // bytes counted in the account's period
	Exhausted bool
	Since     int64 // raised, or removed and set again, it is another budget, of another Since
}

// A BudgetStatus is a budget that does not cover a request, as
// far as this process has it.
type BudgetStatus struct {
	Spender
	QuotaStatus
}

// Of is the account of a budget: that of the organization with limits of its own.
func (a Account) Of(b Budget) Account {
	a.Limit, a.NextLimit, a.Used, a.Exhausted, a.Suspended, a.Budgets, a.Since = b.Limit, b.Limit, b.Used, b.Exhausted, false, nil, b.Since
	return a
}

// Budgets are the quotas of an organization's spenders. Like a
// Quota they are not safe for concurrent use. The zero value has
// none, and costs a request nothing.
type Budgets struct {
	bySpender map[Spender]*Quota // bounded by what the ledger publishes
}

// Apply takes the budgets of an account that is newer. One that is new
// begins with what the ledger has counted.
func (b *Budgets) Apply(account Account, marker Positions) {
	if len(account.Budgets) == 0 {
		b.bySpender = nil
		return
	}
	bySpender := make(map[Spender]*Quota, len(account.Budgets))
	for _, of := range account.Budgets {
		known := b.bySpender[of.Spender]
		if known == nil {
			known = &Quota{marker: marker}
		}
		known.Apply(account.Of(of))
		bySpender[of.Spender] = known
	}
	b.bySpender = bySpender
}

// of are the budgets that a request of a key of a project counts in: at most two.
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

// Check returns, before a request's size is known, the budget of
// which nothing is left; nil where none is.
func (b *Budgets) Check(project, key string, now time.Time) *BudgetStatus {
	found, n := b.of(project, key)
	for _, s := range found[:n] {
		if s.quota.Check(now) == Exhausted {
			return s.status(now)
		}
	}
	return nil
}

// A spending is what a request holds of one budget.
type spending struct {
	spender Spender
	quota   *Quota
	held    Reservation
}

func (s spending) status(now time.Time) *BudgetStatus {
	return &BudgetStatus{Spender: s.spender, QuotaStatus: s.quota.Status(now)}
}

// A BudgetReservation is the part of budgets that one request
// holds: nothing where it has none.
type BudgetReservation []spending

// A Reserve is how a request asks a quota for room:
// (*Quota).Reserve or (*Quota).Try.
type Reserve func(q *Quota, now time.Time, bytes int64) (Reservation, Verdict)

// Reserve admits a request in all of its budgets, or returns why not,
// and which budget that was if it is one.
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

// Release reports that the request is surely not in the log, or not whole.
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

// Mark takes the positions up to which the applied accounts are counted.
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

// Incomplete reports whether anything was lost before the given time
// and is not yet resolved.
func (b *Budgets) Incomplete(before time.Time) bool {
	for _, quota := range b.bySpender {
		if quota.Incomplete(before) {
			return true
		}
	}
	return false
}

// Resolve records that whatever was lost before the given time
// is below ends if it is in the log.
func (b *Budgets) Resolve(before time.Time, ends Positions) {
	for _, quota := range b.bySpender {
		quota.Resolve(before, ends)
	}
}
