package ledger

import "github.com/weirlog/weir/shared/contract/calendar"

// A Book holds the balances of one organization in one period.
type Book struct {
	Period   calendar.Period
	Balances Balances
	Reached  int   // the highest threshold already announced, in percent
	Refused  int64 // the largest allowance of the period that did not cover a request; 0: none
}

// Granted is the whole allowance of the period so far, in bytes.
func (b Book) Granted() int64 { return b.Balances[Grant] + b.Balances[Consumed] }

// Used is what was charged in the period, whether the allowance covered it or not, in bytes.
func (b Book) Used() int64 { return b.Balances[Consumed] + b.Balances[Overage] }

// Remaining is what is left of the allowance, in bytes, never below zero.
func (b Book) Remaining() int64 { return b.Balances[Grant] }

// refuses reports whether the allowance did not cover a request, and was not raised since: nothing
// more is accepted.
func (b Book) refuses() bool { return b.Refused > 0 && b.Granted() <= b.Refused }

// exhausted reports whether there was an allowance and nothing of it is left, or it refuses.
func (b Book) exhausted() bool { return b.Granted() > 0 && (b.Remaining() == 0 || b.refuses()) }

// A move is a transfer before it has an organization, a cause and a line.
type move struct {
	from, to Account
	amount   int64
	reason   Reason
}

// charge splits bytes between what is left of the grant and overage.
func (b Book) charge(bytes int64) []move {
	covered := min(bytes, b.Balances[Grant])
	return []move{
		{Grant, Consumed, covered, Charged},
		{Issuer, Overage, bytes - covered, Charged},
	}
}

// issue adds to the grant, and lets it cover what was overage until now.
func (b Book) issue(bytes int64, reason Reason) []move {
	settled := min(bytes, b.Balances[Overage])
	return []move{
		{Issuer, Grant, bytes, reason},
		{Overage, Issuer, settled, Settled},
		{Grant, Consumed, settled, Settled},
	}
}
