package fairness

import (
	"context"
	"fmt"
	"strings"
)

// An attack is one way in which a noisy tenant may disturb others.
type attack struct {
	name string
	does string // in words, for the table
	// prepare sends what the attack needs before it is measured; nil: nothing.
	prepare func(ctx context.Context, n *noisy) error
	// run attacks until ctx ends. Refusals are expected: an error means that it could not attack at
	// all.
	run func(ctx context.Context, n *noisy) error
}

// attacks are all of them, in the order in which they run.
func attacks() []attack {
	return []attack{
		{"full-rate", "posts of 1,000 entries as fast as they are answered", nil, fullRate},
		{"unread-answers", "six readers of 1,000 large entries that read nothing", storeLarge, leaveUnread},
		{"endless-bodies", "13 gzip bodies of white space that never end", nil, sendEndless},
		{"invalid-bombs", "169 KB of gzip that are 127 MB of invalid entries", nil, sendBombs},
		{"new-errors", "1,000 new error types in each request", nil, sendNewErrors},
		{"large-stacks", "new errors with stacks of 100 KB", nil, sendLargeStacks},
		{"mixed-bodies", "new kinds, a stack of 100 KB, deep nesting and 1,000 keys in each request of under 1 MiB", nil, sendMixed},
		{"broken-gzip", "gzip bodies of 1,000 entries with a wrong checksum", nil, sendBroken},
		{"spread-errors", "new error types to 20 projects, each with a budget of its own", makeProjects, sendSpread},
		{"deep-entries", "six readers of a console page with deeply nested entries", storeDeep, readConsole},
		{"odd-years", "eight readers page through entries of the years 0 and 9999", storeOddYears, pageThroughYears},
		{"forged-cursors", "cursors of the year 0, forged and found", storeOddYears, readFromYearZero},
		{"endless-reads", "16 readers without a pause", storeLarge, readWithoutPause},
		{"broad-searches", "16 searches for words that none of 100 MB has", storeLarge, searchBroadly},
		{"slow-lines", "eight readers of all lines that read the first megabyte and then 16 KB a second", storeLarge, readLinesSlowly},
		{"silent-sockets", "as many silent sockets as can be opened, from one network", nil, silence(1)},
		{"spread-sockets", "the same from 250 networks", nil, silence(250)},
		{"guessed-passwords", "sign-ins with wrong passwords from ever new networks", nil, guessPasswords},
		{"many-projects", "projects by an organization's own token", nil, createProjects},
	}
}

// Attacks lists the names of all attacks.
func Attacks() (names []string) {
	for _, a := range attacks() {
		names = append(names, a.name)
	}
	return names
}

func attackNamed(name string) (attack, error) {
	for _, a := range attacks() {
		if a.name == name {
			return a, nil
		}
	}
	return attack{}, fmt.Errorf("there is no attack %q: choose among %s", name, strings.Join(Attacks(), ", "))
}
