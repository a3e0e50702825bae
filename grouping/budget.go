package grouping

import (
	"crypto/sha256"
	"fmt"
)

// A project may create so many groups by the errors of one hour. Further new ones join the
// project's overflow group: a flood of unique types is counted exactly and fills no table.

// OverflowVersion is that of the overflow's hash, which no algorithm makes of an error.
const OverflowVersion = 0

// overflowHash leads to the overflow of a project.
func overflowHash() ScopedHash {
	sum := sha256.Sum256([]byte("0 budget\n"))
	return ScopedHash{OverflowVersion, ScopeBudget, Hash(sum[:16])}
}

// Overflow moves c to the overflow of its project.
func (c *Count) Overflow() {
	p := overflowHash()
	c.Hashes, c.Similar = []ScopedHash{p}, p.Hash
}

// Overflowed reports whether c belongs to an overflow.
func (c *Count) Overflowed() bool { return c.Deciding().Scope == ScopeBudget }

// DescribeOverflow describes an overflow, where budget is how many groups a project may create in
// an hour.
func DescribeOverflow(budget int) (Description, Why) {
	p := overflowHash()
	rule := "The project had created " + thousands(budget) + " new groups in the hour in which these errors were accepted, as many as it may. " +
		"They are counted here, whatever they are; errors of groups that were there before went on joining those. " +
		"Errors whose type or message holds an id or a value that is new each time are a common cause: see the samples."
	return Description{Title: "More errors than " + thousands(budget) + " new groups an hour", Language: Unknown},
		Why{Version: p.Version, Scope: p.Scope, Hash: p.Hash, Language: Unknown, Rule: Rule(rule)}
}

// thousands writes n with commas.
func thousands(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", thousands(n/1000), n%1000)
}
