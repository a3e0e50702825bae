package ledger

import "time"

// Rules that refuse requests.
const (
	RuleSuspended = "suspended" // the organization can send nothing
	RuleExhausted = "exhausted" // an earlier request needed more than was left
	RuleQuota     = "quota"     // the request needs more than is left
	RuleBudget    = "budget"    // the request needs more than its budget has left
)

// A DryRun is the outcome of a request if sent now.
type DryRun struct {
	Bytes     int64
	Rule      string // that would refuse it; empty: accepted
	Covered   int64  // bytes covered by the allowance and grants
	Overage   int64  // uncovered bytes
	Remaining int64  // of the allowance and grants, afterwards
	Exhausts  bool   // afterwards nothing more is accepted, of its budget if that refused it
	Budget    Budget // the refusing budget; zero: none
}

// Try returns the outcome of an organization's request in the running
// period's book.
func (o Organization) Try(book Book, bytes int64, at time.Time) DryRun {
	plan, dryRun := o.Plans.At(at), DryRun{Bytes: bytes, Remaining: book.Remaining()}
	left := o.Admits(book, at)
	switch {
	case o.Suspended:
		dryRun.Rule = RuleSuspended
	case book.refuses(plan):
		dryRun.Rule = RuleExhausted
	case bytes > left:
		dryRun.Rule, dryRun.Exhausts = RuleQuota, true
	default:
		dryRun.Covered = min(bytes, book.Remaining())
		dryRun.Overage = bytes - dryRun.Covered
		dryRun.Remaining, dryRun.Exhausts = book.Remaining()-dryRun.Covered, bytes == left
	}
	return dryRun
}

// Under applies the period's budgets to a dry run for a project's and
// key's request: one may refuse it.
func (t DryRun) Under(budgets []Budget, project, key string) DryRun {
	if t.Rule != "" {
		return t
	}
	for _, budget := range budgets {
		if budget.spentBy(Cause{Project: project, Key: key}) && (budget.IsExhausted() || t.Bytes > budget.Remaining()) {
			return DryRun{Bytes: t.Bytes, Rule: RuleBudget, Remaining: t.Remaining + t.Covered, Exhausts: true, Budget: budget}
		}
	}
	return t
}

// Admits returns how many bytes ingest would still accept in the period.
func (o Organization) Admits(book Book, at time.Time) int64 {
	return max(0, book.limit(o.Plans.At(at))-book.Used())
}

// ResolutionOf returns the resolution for a request beyond what is left.
func (t Tiers) ResolutionOf(o Organization, book Book, bytes int64, at time.Time) Resolution {
	refusal := Refusal{Bytes: bytes, Remaining: o.Admits(book, at), Quota: book.limit(o.Plans.At(at)), Cause: Cause{At: at}}
	return t.Resolution(o, refusal)
}
