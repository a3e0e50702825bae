package ledger

import "time"

// Rules by which a request would be refused.
const (
	RuleSuspended = "suspended" // the organization can send nothing
	RuleExhausted = "exhausted" // a request needed more than was left: everything is refused since
	RuleQuota     = "quota"     // less is left than the request needs
	RuleBudget    = "budget"    // less is left of a budget of its project or key, or that is exhausted
)

// A Trial is what would become of a request that was accepted now.
type Trial struct {
	Bytes     int64
	Rule      string // by which it would be refused; empty: it would be accepted
	Covered   int64  // of its bytes, by the allowance and grants
	Overage   int64  // of its bytes, by nothing
	Remaining int64  // of the allowance and grants, afterwards
	Exhausts  bool   // nothing more would be accepted afterwards, of whose budget refused it
	Budget    Budget // that would refuse it; zero: none
}

// Try finds what would become of a request of an organization,
// of which book is the running period's.
func (o Organization) Try(book Book, bytes int64, at time.Time) Trial {
	plan, trial := o.Plans.At(at), Trial{Bytes: bytes, Remaining: book.Remaining()}
	left := o.Admits(book, at)
	switch {
	case o.Suspended:
		trial.Rule = RuleSuspended
	case book.refuses(plan):
		trial.Rule = RuleExhausted
	case bytes > left:
		trial.Rule, trial.Exhausts = RuleQuota, true
	default:
		trial.Covered = min(bytes, book.Remaining())
		trial.Overage = bytes - trial.Covered
		trial.Remaining, trial.Exhausts = book.Remaining()-trial.Covered, bytes == left
	}
	return trial
}

// Under is the trial of a request of a project and key with the budgets of the
// period: of what the organization may send, one may refuse it.
func (t Trial) Under(budgets []Budget, project, key string) Trial {
	if t.Rule != "" {
		return t
	}
	for _, budget := range budgets {
		if budget.sent(Cause{Project: project, Key: key}) && (budget.IsOut() || t.Bytes > budget.Remaining()) {
			return Trial{Bytes: t.Bytes, Rule: RuleBudget, Remaining: t.Remaining + t.Covered, Exhausts: true, Budget: budget}
		}
	}
	return t
}

// Admits is how many bytes ingest would still accept in the period.
func (o Organization) Admits(book Book, at time.Time) int64 {
	return max(0, book.limit(o.Plans.At(at))-book.Used())
}

// RemedyOf is what would have a request accepted that would be
// refused by what is left.
func (t Tiers) RemedyOf(o Organization, book Book, bytes int64, at time.Time) Remedy {
	refusal := Refusal{Bytes: bytes, Remaining: o.Admits(book, at), Quota: book.limit(o.Plans.At(at)), Cause: Cause{At: at}}
	return t.Remedy(o, refusal)
}
