package ledger

import "fmt"

// An Account is one side of a transfer in the books of one organization and period.
type Account uint8

// The accounts. What leaves one arrives at another, so together
// they hold zero. Their numbers are stored.
const (
	Issuer    Account = iota // where allowances and overdrafts come from: never above zero
	Allowance                // what is left of the plan's allowance for the period
	Consumed                 // used, and covered by an allowance or a grant
	Overage                  // used, and covered by nothing
	Credit                   // what the period added to the organization's grants; below zero where it used those of before
	Expired                  // granted, and gone unused
	Voided                   // granted, and taken back
	accounts
)

var accountNames = [accounts]string{"issuer", "grant", "consumed", "overage", "credit", "expired", "voided"}

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
