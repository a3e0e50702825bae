package ledger

// The invariants of books.
const (
	SumIsZero          = "the balances of a book sum to zero"
	BalanceIsTransfers = "a book's balances are the sum of its transfers"
	UsageIsCharges     = "usage per project and key is what was charged"
	HoursAreDays       = "usage by hour is usage by day"
	BudgetIsUsage      = "what a budget has used is the usage of its project or key"
	RangeIsTransfers   = "what a range charged is the sum of its transfers"
	RangesFollow       = "the ranges of a partition leave out nothing but parked records"
	StatementIsBook    = "a statement is what its book came to"
	LedgerIsLog        = "the ledger's bytes are the log's bytes"
	GrantIsTransfers   = "what became of a grant is the sum of its transfers"
	ChainHolds         = "each link of a chain follows from the one before"
	ChainIsCharges     = "a chain has what was charged and decided"
	RootIsChains       = "the root of an hour is that of all chains"
)

// Invariants returns all of them.
func Invariants() []string {
	return []string{SumIsZero, BalanceIsTransfers, UsageIsCharges, HoursAreDays, BudgetIsUsage, RangeIsTransfers, RangesFollow, StatementIsBook, LedgerIsLog,
		GrantIsTransfers, ChainHolds, ChainIsCharges, RootIsChains}
}

// A Violation is a broken invariant. There should never be one.
type Violation struct {
	Invariant string
	Detail    string
}
