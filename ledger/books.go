package ledger

// Books are one organization's books, open for one writer: its periods
// and budgets, and what is decided about them. Methods collect the
// transfers and events to store with them.
type Books struct {
	periods
	Budgets  Budgets
	TestUses []TestUseOutcome
	Steps    []Step // what was decided
	Chain    *Head  // what statements carry; nil: as it is stored
}

// OpenBooks opens an organization's books: those of every existing
// period to write to, and the live grants.
func OpenBooks(organization Organization, grants []Grant, books ...Book) *Books {
	opened := make(map[int64]*Book, len(books)+1)
	for _, book := range books {
		opened[book.Period.Start.Unix()] = &book
	}
	b := &Books{periods: periods{Organization: organization, books: opened}}
	for _, grant := range grants {
		b.Grants = append(b.Grants, &grant)
	}
	return b
}

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
	of := b.Organization.PeriodAt(c.Cause.At).Start
	b.correct(first, of)
	if len(b.Transfers) > first {
		b.Events = append(b.Events, Event{
			Kind: BooksAdjusted, Organization: b.Organization.ID, Book: b.withPool(book), Cause: c.Cause, Subject: c.Cause.Event, Amount: -c.Bytes, Of: of,
		})
	}
}

// decide books at the plan's start, however late it is known.
func (d PlanStarted) decide(b *Books, cause Cause) error {
	cause.At = d.Plan.From
	b.Organization.Plans, b.Organization.ClosedThrough = Plans{d.Plan}, b.Organization.PeriodAt(d.Plan.From).Start
	b.Organization.Opened, b.Organization.Usual = d.Opened, d.Thresholds
	for _, book := range b.All() {
		b.grantAllowance(b.books[book.Period.Start.Unix()], cause)
		if book.Period.Start.Before(b.Organization.ClosedThrough) {
			b.Organization.ClosedThrough = book.Period.Start
		}
	}
	_, err := b.touch(b.Organization.firstSeen(d.Plan), cause)
	return err
}
