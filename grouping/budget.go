package grouping

import (
	"crypto/sha256"
	"fmt"

	"github.com/weirlog/weir/grouping/trace"
)

// Budgets limit how many groups the errors of one hour may
// create: in a project, and in all projects of an organization.
// New groups beyond that share the project's overflow group, so
// a flood of unique types is counted exactly and fills no table.
type Budgets struct{ Project, Organization int }

// OverflowVersion is the overflow hash's. No algorithm has it.
const OverflowVersion = 0

// overflowHash leads to the overflow of a project.
func overflowHash() ScopedHash {
	sum := sha256.Sum256([]byte("0 budget\n"))
	return ScopedHash{OverflowVersion, ScopeBudget, Hash(sum[:16])}
}

// Overflow moves c to its project's overflow, as its budget
// is used up or, if ofOrganization, that of the organization.
func (c *Count) Overflow(ofOrganization bool) {
	p := overflowHash()
	c.Hashes, c.Similar, c.ofOrganization = []ScopedHash{p}, p.Hash, ofOrganization
}

// Overflowed reports whether c belongs to an overflow.
func (c *Count) Overflowed() bool { return c.Deciding().Scope == ScopeBudget }

// DescribeOverflow describes c's overflow by the budget that was used up.
func (c *Count) DescribeOverflow(budgets Budgets) (Description, Explanation) {
	most, whose, who := budgets.Project, "", "The project had created"
	if c.ofOrganization {
		most, whose, who = budgets.Organization, " in all projects", "All projects of the organization together had created"
	}
	rule := who + " " + thousands(most) + " new groups in the hour in which these errors were accepted, as many as may be. " +
		"They are counted here, whatever they are; errors of groups that were there before went on joining those. " +
		"Errors whose type or message holds an id or a value that is new each time are a common cause: see the samples."
	p := overflowHash()
	return Description{Title: "More errors than " + thousands(most) + " new groups an hour" + whose, Language: trace.Unknown},
		Explanation{Version: p.Version, Scope: p.Scope, Hash: p.Hash, Language: trace.Unknown, Rule: Rule(rule)}
}

// thousands writes n with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
