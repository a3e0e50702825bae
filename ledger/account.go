package ledger

import "fmt"

// An Account is one side of a transfer in an organization's books of one period.
type Account uint8

// The accounts. Each transfer moves bytes between two, so they sum to
// zero. Their numbers are stored.
const (
	Issuer    Account = iota // source of allowances and overdrafts: never positive
	Allowance                // what is left of the plan's allowance for the period
	Consumed                 // used and covered by an allowance or a grant
	Overage                  // used and uncovered, as the plan accepts or an adjustment charges
	Credit                   // added to the grants; negative: it used earlier grants
	Expired                  // granted and expired
	Voided                   // granted and taken back
	Overshoot                // accepted beyond what the plan allows: the operator's, never owed by the customer
	accounts
)

var accountNames = [accounts]string{"issuer", "grant", "consumed", "overage", "credit", "expired", "voided", "overshoot"}

func (a Account) String() string {
	if a >= accounts {
		return fmt.Sprintf("account(%d)", uint8(a))
	}
	return accountNames[a]
}

// Balances are the bytes that each account holds, indexed by Account.
type Balances [accounts]int64

// Sum is zero in sound books.
func (b Balances) Sum() int64 {
	var sum int64
	for _, amount := range b {
		sum += amount
	}
	return sum
}

// Apply books one transfer.
func (b *Balances) Apply(t Transfer) {
	b[t.From] -= t.Amount
	b[t.To] += t.Amount
}
