package ledger

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// Books are one organization's books, open for one writer. Methods
// collect the transfers and events to store with them.
type Books struct {
	Organization   Organization
	Grants         []*Grant // live ones
	Budgets        []*Budget
	RemovedBudgets []Spender // whose budgets were removed
	Transfers      []Transfer
	Events         []Event
	TestUses       []TestUseOutcome
	Steps          []Step // what was decided
	Chain          *Head  // what statements carry; nil: as it is stored

	books map[int64]*Book // by period start, Unix seconds; bounded by the open periods
	lines int
}

// OpenBooks opens an organization's books: those of every existing
// period to write to, and the live grants.
func OpenBooks(organization Organization, grants []Grant, books ...Book) *Books {
	opened := make(map[int64]*Book, len(books)+1)
	for _, book := range books {
		opened[book.Period.Start.Unix()] = &book
	}
	b := &Books{Organization: organization, books: opened}
	for _, grant := range grants {
		b.Grants = append(b.Grants, &grant)
	}
	return b
}

// All returns the books by period start.
func (b *Books) All() []Book {
	all := make([]Book, 0, len(b.books))
	for _, book := range b.books {
		all = append(all, b.withPool(book))
	}
	slices.SortFunc(all, func(x, y Book) int { return x.Period.Start.Compare(y.Period.Start) })
	return all
}

// withPool returns a book with what is left of the grants.
func (b *Books) withPool(book *Book) Book {
	withPool := *book
	withPool.Pool = b.Organization.Pool
	return withPool
}

// Reserve allocates transfers for so many charges, mostly one for each.
func (b *Books) Reserve(charges int) { b.Transfers = slices.Grow(b.Transfers, charges) }

// Charge books accepted logs in the period of their acceptance or, if
// it is closed, the earliest open one. The first charge of a period
// issues its allowance.
func (b *Books) Charge(c Charge) error {
	if err := c.Validate(); err != nil {
		return err
	}
	b.lines = 0
	at, reason := c.Cause.At, Charged
	if b.Organization.isClosed(at) {
		at, reason = b.Organization.ClosedThrough, Late
	}
	book, err := b.touch(at, c.Cause)
	if err != nil {
		return err
	}
	first := len(b.Transfers)
	b.post(book, c.Cause, b.accept(book, c.Bytes, c.Cause.At, reason)...)
	if len(b.Transfers) > first {
		b.Transfers[first].Entries = c.Entries
	}
	if reason == Late {
		b.late(book, c, first)
	}
	b.spend(c)
	return nil
}

// late marks transfers of a charge, from first on, as late for a closed period.
func (b *Books) late(book *Book, c Charge, first int) {
	of := b.periodAt(c.Cause.At).Start
	b.correct(first, of)
	if len(b.Transfers) > first {
		b.Events = append(b.Events, Event{
			Kind: BooksAdjusted, Organization: b.Organization.ID, Book: b.withPool(book), Cause: c.Cause, Subject: c.Cause.Event, Amount: -c.Bytes, Of: of,
		})
	}
}

// correct sets the period that transfers from first on correct.
func (b *Books) correct(first int, of time.Time) {
	for i := range b.Transfers[first:] {
		b.Transfers[first+i].Of = of
	}
}

// accept splits accepted bytes between the allowance, the grants, the
// plan's overage and, beyond that, overshoot.
func (b *Books) accept(book *Book, bytes int64, at time.Time, reason Reason) []move {
	moves, left := b.cover(book, bytes, at, reason)
	overage := min(left, b.overageLeft(book))
	return append(moves, move{from: Issuer, to: Overage, amount: overage, reason: reason},
		move{from: Issuer, to: Overshoot, amount: left - overage, reason: reason})
}

// overageLeft returns how much more overage a book takes by the last
// plan of its period. That of the acceptance would make it depend on
// the order in which partitions are booked. Without a plan it takes all.
func (b *Books) overageLeft(book *Book) int64 {
	if b.Organization.Provisional() {
		return math.MaxInt64
	}
	last := b.Organization.Plans.At(book.Period.End.Add(-instant))
	return max(0, last.overageAllowed()-book.Balances[Overage])
}

// owe splits bytes of an adjustment: what nothing covers is overage,
// whatever the plan.
func (b *Books) owe(book *Book, bytes int64, at time.Time) []move {
	moves, left := b.cover(book, bytes, at, Corrected)
	return append(moves, move{from: Issuer, to: Overage, amount: left, reason: Corrected})
}

// cover splits bytes between the allowance and the grants, in order of
// use, and returns how many are left.
func (b *Books) cover(book *Book, bytes int64, at time.Time, reason Reason) (moves []move, left int64) {
	moves, left = make([]move, 0, 3), bytes
	for _, grant := range inOrder(b.Grants, at, book.Period.End) {
		from, covered := Allowance, min(left, book.Balances[Allowance])
		if grant != nil {
			from, covered = Credit, min(left, grant.Remaining)
		}
		moves, left = append(moves, move{from: from, to: Consumed, amount: covered, reason: reason, grant: grant}), left-covered
	}
	return moves, left
}

// Start decides an organization's first plan; nothing where it has one.
// It fails with ErrUnknownTier.
func (b *Books) Start(rules Rules, plan Plan) ([]Decision, error) {
	if !b.Organization.Provisional() {
		return nil, nil
	}
	plan, err := rules.Seed(plan)
	if err != nil {
		return nil, err
	}
	return []Decision{PlanStarted{Plan: plan, Opened: b.Organization.Opened, Thresholds: rules.Thresholds}}, nil
}

// decide books at the plan's start, however late it is known.
func (d PlanStarted) decide(b *Books, cause Cause) error {
	cause.At = d.Plan.From
	b.Organization.Plans, b.Organization.ClosedThrough = Plans{d.Plan}, b.periodAt(d.Plan.From).Start
	b.Organization.Opened, b.Organization.Usual = d.Opened, d.Thresholds
	for _, book := range b.All() {
		b.grantAllowance(b.books[book.Period.Start.Unix()], cause)
		if book.Period.Start.Before(b.Organization.ClosedThrough) {
			b.Organization.ClosedThrough = book.Period.Start
		}
	}
	_, err := b.touch(b.firstSeen(d.Plan), cause)
	return err
}

// firstSeen is an instant of the first period with an allowance: that
// of the first plan or, in a rebuilt ledger, the period then running.
func (b *Books) firstSeen(first Plan) time.Time {
	if b.Organization.sawWhole(b.periodAt(first.From)) {
		return first.From
	}
	return b.Organization.Opened
}

// At returns the book of t's period as a touch would make it. It changes nothing.
func (b *Books) At(t time.Time) (Book, error) {
	period := b.periodAt(t)
	if book, ok := b.books[period.Start.Unix()]; ok {
		return b.withPool(book), nil
	}
	untouched := OpenBooks(b.Organization, nil)
	untouched.Organization.ClosedThrough = time.Time{} // unchanged
	book, err := untouched.touch(t, Cause{At: t})
	if err != nil {
		return Book{}, err
	}
	return b.withPool(book), nil
}

func (b *Books) periodAt(t time.Time) calendar.Period {
	return b.Organization.PeriodAt(t)
}

// touch opens the book of t's period with its allowance. A closed one
// was not read: opening would overwrite it.
func (b *Books) touch(t time.Time, cause Cause) (*Book, error) {
	period := b.periodAt(t)
	if book, ok := b.books[period.Start.Unix()]; ok {
		return book, nil
	}
	if !period.End.After(b.Organization.ClosedThrough) {
		return nil, fmt.Errorf("organization %q, period of %s: %w", b.Organization.ID, period.Start.Format(time.DateOnly), ErrClosed)
	}
	book := &Book{Period: period}
	b.books[period.Start.Unix()] = book
	if !b.Organization.Provisional() {
		b.grantAllowance(book, cause)
	}
	return book, nil
}

// grantAllowance issues the allowance of the plan at the period's
// start. Of what came before the first plan it leaves the overage that
// the plan accepts.
func (b *Books) grantAllowance(book *Book, cause Cause) {
	plan := b.Organization.Plans.At(book.Period.Start)
	b.post(book, cause, book.issue(b.Organization.share(plan.Terms().Quota, book.Period), Issued)...)
	excess := book.Balances[Overage] - plan.overageAllowed()
	b.post(book, cause, move{from: Overage, to: Overshoot, amount: max(0, excess), reason: Settled})
}

// grant finds a live grant; nil where there is none.
func (b *Books) grant(id string) *Grant {
	for _, g := range b.Grants {
		if g.ID == id && g.live() {
			return g
		}
	}
	return nil
}

// post books nonzero moves and emits their events.
func (b *Books) post(book *Book, cause Cause, moves ...move) {
	wasOut, before := b.isExhausted(book, cause.At), *book
	allowed, pool := b.allowed(book, cause.At), b.Organization.Pool
	b.apply(book, cause, moves...)
	book.countRaise(allowed, b.allowed(book, cause.At))
	b.announce(book, before, wasOut, cause)
	b.announceAhead(book, pool, cause)
}

// apply is post without events.
func (b *Books) apply(book *Book, cause Cause, moves ...move) {
	for _, m := range moves {
		if m.amount == 0 {
			continue
		}
		transfer := Transfer{
			Organization: b.Organization.ID, Period: book.Period,
			From: m.from, To: m.to, Amount: m.amount, Reason: m.reason, Cause: cause, Line: b.lines,
		}
		if m.grant != nil {
			transfer.Grant = m.grant.ID
			b.Organization.Pool += m.grant.take(m)
			m.grant.end(book.Period.End)
			b.addAhead(book, m)
		}
		book.Balances.Apply(transfer)
		b.Transfers = append(b.Transfers, transfer)
		b.lines++
	}
}

// addAhead records use of a grant in a period after an open one.
func (b *Books) addAhead(book *Book, m move) {
	if m.from == Credit && m.grant.RolloverCap != nil && book.Period.Start.After(b.Organization.ClosedThrough) {
		m.grant.addAhead(book.Period.Start, m.amount)
	}
}

// isExhausted reports whether a book accepts nothing more at an instant.
func (b *Books) isExhausted(book *Book, at time.Time) bool {
	return b.withPool(book).isExhausted(b.planIn(book, at))
}

// allowed returns how much of a book may be used by the plan of an instant.
func (b *Books) allowed(book *Book, at time.Time) int64 {
	return b.withPool(book).limit(b.planIn(book, at))
}

// planIn returns the plan of a book at an instant. A late charge uses
// the open period's plan.
func (b *Books) planIn(book *Book, at time.Time) Plan {
	if at.Before(book.Period.Start) {
		at = book.Period.Start
	}
	return b.Organization.Plans.At(at)
}

// announce emits each threshold once in a period, and each exhaustion,
// restoration and start of overage.
func (b *Books) announce(book *Book, before Book, wasOut bool, cause Cause) {
	withPool := b.withPool(book)
	for _, percent := range ThresholdsOf(b.Organization).crossed(withPool.Reached, withPool.Used(), withPool.Allowance()) {
		book.Reached = percent
		b.Events = append(b.Events, Event{
			Kind: ThresholdReached, Organization: b.Organization.ID, Book: b.withPool(book), Percent: percent, Cause: cause,
		})
	}
	if before.Balances[Overage] == 0 && book.Balances[Overage] > 0 && b.planIn(book, cause.At).Overage {
		b.emit(OverageBegun, book, cause)
	}
	switch isExhausted := b.isExhausted(book, cause.At); {
	case isExhausted && !wasOut:
		b.emit(QuotaExhausted, book, cause)
	case wasOut && !isExhausted:
		b.emit(QuotaRestored, book, cause)
	}
}

// announceAhead announces for later open periods whose grants a change
// of book has used or raised. pool was their pool before.
func (b *Books) announceAhead(of *Book, pool int64, cause Cause) {
	if pool == b.Organization.Pool || len(b.books) < 2 {
		return
	}
	for _, ahead := range b.All() {
		if !ahead.Period.Start.After(of.Period.Start) {
			continue
		}
		before, book := ahead, b.books[ahead.Period.Start.Unix()]
		before.Pool = pool
		plan := b.planIn(book, cause.At)
		book.countRaise(before.limit(plan), b.allowed(book, cause.At))
		b.announce(book, before, before.isExhausted(plan), cause)
	}
}

func (b *Books) emit(kind EventKind, book *Book, cause Cause) {
	b.Events = append(b.Events, Event{Kind: kind, Organization: b.Organization.ID, Book: b.withPool(book), Cause: cause})
}

// emitGrant is emit for a grant.
func (b *Books) emitGrant(kind EventKind, g *Grant, cause Cause) {
	b.Events = append(b.Events, Event{Kind: kind, Organization: b.Organization.ID, Cause: cause, Grant: *g})
}
