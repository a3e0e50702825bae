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
	StatementsFollow   = "each statement follows from the one before"
	DecisionsFollow    = "each decision follows from the one before"
	StandingIsDecided  = "an organization is what its decisions made of it"
	TermsAreRecorded   = "the terms are as a starting process recorded them"
	GrantIsTransfers   = "what became of a grant is the sum of its transfers"
	GrantIsDecided     = "a grant is as it was decided"
	RefusalsAreKept    = "refusals are as they came"
	TransfersAreWhole  = "each transfer is one that its cause makes"
	LinesAreTransfers  = "the lines of a period are the sum of its transfers"
	BooksArePeriods    = "each book is of a period of its organization"
	ChainHolds         = "each link of a chain follows from the one before"
	ChainIsCharges     = "a chain has what was charged and decided"
	RootIsChains       = "the root of an hour is that of all chains"
	CheckpointIsSealed = "a checkpoint is what the root of its hour has"
)

// Invariants returns all of them.
func Invariants() []string {
	return []string{SumIsZero, BalanceIsTransfers, UsageIsCharges, HoursAreDays, BudgetIsUsage, RangeIsTransfers, RangesFollow, StatementIsBook, LedgerIsLog,
		GrantIsTransfers, StatementsFollow, DecisionsFollow, StandingIsDecided, TermsAreRecorded, GrantIsDecided, RefusalsAreKept, TransfersAreWhole,
		LinesAreTransfers, BooksArePeriods, ChainHolds, ChainIsCharges, RootIsChains, CheckpointIsSealed}
}

// A Violation is a broken invariant. There should never be one.
type Violation struct {
	Invariant string
	Detail    string
}
