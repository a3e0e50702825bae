package ledger

import "fmt"

// An Account is one side of a transfer in the books of one organization and period.
type Account uint8

// The accounts. What leaves one arrives at another, so together they hold zero.
const (
	Issuer   Account = iota // where grants and overdrafts come from: never above zero
	Grant                   // granted and not yet used
	Consumed                // used, and covered by the grant
	Overage                 // used, and covered by no grant
	accounts
)

var accountNames = [accounts]string{"issuer", "grant", "consumed", "overage"}

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
