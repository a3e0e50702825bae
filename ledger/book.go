package ledger

import "github.com/weirlog/weir/shared/contract/calendar"

// A Book holds the balances of one organization in one period.
type Book struct {
	Period   calendar.Period
	Balances Balances
	Reached  int   // the highest threshold already announced, in percent
	Refused  int64 // the largest allowance that did not cover a request since the last raise; 0: none
	Raises   int64 // how often the allowance of the period was raised
	Pool     int64 // what is left of the organization's grants: they belong to no period
}

// Granted is all bytes that there were to use in the period so
// far, whatever became of them.
func (b Book) Granted() int64 { return b.Allowance() + b.Balances[Expired] + b.Balances[Voided] }

// Allowance is Granted without what can't be used any more.
func (b Book) Allowance() int64 { return b.Balances[Allowance] + b.Balances[Consumed] + b.Pool }

// Used is what was charged in the period, whether anything
// covered it or not, in bytes.
func (b Book) Used() int64 { return b.Balances[Consumed] + b.Balances[Overage] }

// Remaining is what is left of the plan's allowance and of
// grants, in bytes, never below zero.
func (b Book) Remaining() int64 { return b.Balances[Allowance] + b.Pool }

// refuses reports whether what a plan allows did not cover a request, and was
// not raised since: nothing more is accepted.
func (b Book) refuses(plan Plan) bool { return b.Refused > 0 && b.limit(plan) <= b.Refused }

// weigh compares what may be used with what it was: a raise ends what was
// refused before, also where the allowance is lowered again.
func (b *Book) weigh(before, now int64) {
	if now > before {
		b.Refused = 0
		b.Raises++
	}
}

// limit is how much may be used in the period.
func (b Book) limit(plan Plan) int64 { return b.Allowance() + plan.overageAllowed() }

// isOut reports whether there was an allowance, and nothing more
// is accepted under a plan.
func (b Book) isOut(plan Plan) bool {
	return b.Allowance() > 0 && (b.Remaining() == 0 && b.Balances[Overage] >= plan.overageAllowed() || b.refuses(plan))
}

// A move is a transfer before it has an organization, a cause and a line.
type move struct {
	from, to Account
	amount   int64
	reason   Reason
	grant    *Grant // whose bytes they are; nil: the plan's
}

// issue adds to the plan's allowance, and lets it cover what was overage until now.
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
