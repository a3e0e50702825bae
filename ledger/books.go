package ledger

import (
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// Books are one organization's books, open for writing. Its methods decide, and collect the
// transfers and events to store with the changed books. An organization's books have one writer at
// a time.
type Books struct {
	Organization Organization
	Transfers    []Transfer
	Events       []Event

	tiers Tiers
	books map[int64]*Book // by the period's start, Unix seconds
	lines int
}

// OpenBooks opens an organization's books. books has to hold every period that will be written to,
// if it exists.
func OpenBooks(organization Organization, tiers Tiers, books ...Book) *Books {
	opened := make(map[int64]*Book, len(books)+1)
	for _, book := range books {
		opened[book.Period.Start.Unix()] = &book
	}
	return &Books{Organization: organization, tiers: tiers, books: opened}
}

// All lists the books by their periods' starts.
func (b *Books) All() []Book {
	all := make([]Book, 0, len(b.books))
	for _, book := range b.books {
		all = append(all, *book)
	}
	slices.SortFunc(all, func(x, y Book) int { return x.Period.Start.Compare(y.Period.Start) })
	return all
}

// Charge books accepted logs in the period of their acceptance. The first charge of a period issues
// its grant.
func (b *Books) Charge(c Charge) error {
	if err := c.Validate(); err != nil {
		return err
	}
	b.lines = 0
	book, err := b.touch(c.Cause.At, c.Cause)
	if err != nil {
		return err
	}
	first := len(b.Transfers)
	b.post(book, c.Cause, book.charge(c.Bytes)...)
	if len(b.Transfers) > first {
		b.Transfers[first].Entries = c.Entries
	}
	return nil
}

// StartPlan gives a provisional organization its first plan: every period with charges gets its
// allowance. It changes nothing where there is a plan, so the event may come twice.
func (b *Books) StartPlan(plan Plan, cause Cause) error {
	if !b.Organization.Provisional() {
		return nil
	}
	if _, err := b.tiers.Terms(plan.Tier); err != nil {
		return err
	}
	b.lines = 0
	b.Organization.Plans = Plans{plan}
	for _, book := range b.All() {
		if err := b.grant(b.books[book.Period.Start.Unix()], cause); err != nil {
			return err
		}
	}
	_, err := b.touch(plan.From, cause)
	return err
}

// At is the book of the period of t as it would be if it were touched then. It changes nothing.
func (b *Books) At(t time.Time) (Book, error) {
	period := calendar.PeriodAt(t, b.Organization.AnchorDay)
	if book, ok := b.books[period.Start.Unix()]; ok {
		return *book, nil
	}
	untouched := OpenBooks(b.Organization, b.tiers)
	book, err := untouched.touch(t, Cause{At: t})
	if err != nil {
		return Book{}, err
	}
	return *book, nil
}

// touch opens the book of the period that holds t, with its allowance, if it is not open yet.
func (b *Books) touch(t time.Time, cause Cause) (*Book, error) {
	period := calendar.PeriodAt(t, b.Organization.AnchorDay)
	if book, ok := b.books[period.Start.Unix()]; ok {
		return book, nil
	}
	book := &Book{Period: period}
	b.books[period.Start.Unix()] = book
	if b.Organization.Provisional() {
		return book, nil
	}
	return book, b.grant(book, cause)
}

// grant issues the allowance of the tier that is in force when the period starts.
func (b *Books) grant(book *Book, cause Cause) error {
	terms, err := b.tiers.Terms(b.Organization.Plans.At(book.Period.Start))
	if err != nil {
		return err
	}
	b.post(book, cause, book.issue(terms.Quota, Issued)...)
	return nil
}

// post books the moves that move anything, and notes what became true by them.
func (b *Books) post(book *Book, cause Cause, moves ...move) {
	before := *book
	for _, m := range moves {
		if m.amount == 0 {
			continue
		}
		transfer := Transfer{
			Organization: b.Organization.ID, Period: book.Period,
			From: m.from, To: m.to, Amount: m.amount, Reason: m.reason, Cause: cause, Line: b.lines,
		}
		book.Balances.Apply(transfer)
		b.Transfers = append(b.Transfers, transfer)
		b.lines++
	}
	b.announce(book, before, cause)
}

// announce records each threshold reached for the first time in a period, and each exhaustion.
func (b *Books) announce(book *Book, before Book, cause Cause) {
	for _, percent := range crossed(*book) {
		book.Reached = percent
		b.emit(ThresholdReached, *book, percent, cause)
	}
	if book.exhausted() && !before.exhausted() {
		b.emit(QuotaExhausted, *book, 0, cause)
	}
}

func (b *Books) emit(kind EventKind, book Book, percent int, cause Cause) {
	b.Events = append(b.Events, Event{Kind: kind, Organization: b.Organization.ID, Book: book, Percent: percent, Cause: cause})
}
