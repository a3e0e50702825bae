package ledger

import "github.com/weirlog/weir/shared/contract/calendar"

// A Book holds the balances of one organization in one period.
type Book struct {
	Period   calendar.Period
	Balances Balances
	Reached  int   // the highest threshold already announced, in percent
	Refused  int64 // largest allowance that refused a request since the last raise; 0: none
	Raises   int64 // how often the allowance of the period was raised
	Pool     int64 // left of the organization's grants, which belong to no period
}

// Granted returns all bytes granted in the period so far.
func (b Book) Granted() int64 { return b.Allowance() + b.Balances[Expired] + b.Balances[Voided] }

// Allowance is Granted without expired and voided bytes.
func (b Book) Allowance() int64 { return b.Balances[Allowance] + b.Balances[Consumed] + b.Pool }

// Used returns the bytes charged to the organization in the period,
// covered or not. Overshoot is not.
func (b Book) Used() int64 { return b.Balances[Consumed] + b.Balances[Overage] }

// Remaining returns what is left of the allowance and the grants, in
// bytes, never negative.
func (b Book) Remaining() int64 { return b.Balances[Allowance] + b.Pool }

// refuses reports whether the plan's limit refused a request and was
// not raised since: nothing more is accepted.
func (b Book) refuses(plan Plan) bool { return b.Refused > 0 && b.limit(plan) <= b.Refused }

// countRaise compares two limits. A raise ends earlier refusals, even
// if the limit is lowered again.
func (b *Book) countRaise(before, now int64) {
	if now > before {
		b.Refused = 0
		b.Raises++
	}
}

// limit returns how much may be used in the period.
func (b Book) limit(plan Plan) int64 { return b.Allowance() + plan.overageAllowed() }

// isExhausted reports whether there was an allowance and nothing more
// is accepted under a plan.
func (b Book) isExhausted(plan Plan) bool {
	return b.Allowance() > 0 && (b.Remaining() == 0 && b.Balances[Overage] >= plan.overageAllowed() || b.refuses(plan))
}

// A move is a transfer before it has an organization, a cause and a line.
type move struct {
	from, to Account
	amount   int64
	reason   Reason
	grant    *Grant // whose bytes they are; nil: the plan's
}

// issue adds to the plan's allowance and covers overage with it.
func (b Book) issue(bytes int64, reason Reason) []move {
	settled := min(bytes, b.Balances[Overage])
	return []move{
		{from: Issuer, to: Allowance, amount: bytes, reason: reason},
		{from: Overage, to: Issuer, amount: settled, reason: Settled},
		{from: Allowance, to: Consumed, amount: settled, reason: Settled},
	}
}

// issueGrant is issue for a grant.
func (b Book) issueGrant(grant *Grant, reason Reason) []move {
	settled := min(grant.Amount, b.Balances[Overage])
	return []move{
		{from: Issuer, to: Credit, amount: grant.Amount, reason: reason, grant: grant},
		{from: Overage, to: Issuer, amount: settled, reason: Settled},
		{from: Credit, to: Consumed, amount: settled, reason: Settled, grant: grant},
	}
}
