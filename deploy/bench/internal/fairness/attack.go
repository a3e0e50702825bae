package fairness

import (
	"context"
	"fmt"
	"strings"
)

// An attack is one way in which a noisy tenant may disturb others.
type attack struct {
	name        string
	description string // in words, for the table
	// prepare sends what the attack needs before the measurement; nil: nothing.
	prepare func(ctx context.Context, n *noisy) error
	// run attacks until ctx ends. Refusals are expected: an error
	// means that it could not attack at all.
	run func(ctx context.Context, n *noisy) error
	// lawful: it stays within every limit, so it need not be refused;
	// it still must not disturb others.
	lawful bool
}

// attacks returns all attacks, in their order.
func attacks() []attack {
	return []attack{
		{"full-rate", "posts of 1,000 entries as fast as they are answered", nil, fullRate, true},
		{"unread-answers", "six readers of 1,000 large entries that read nothing", storeLarge, leaveUnread, false},
		{"endless-bodies", "13 gzip bodies of white space that never end", nil, sendEndless, false},
		{"invalid-bombs", "169 KB of gzip that are 127 MB of invalid entries", nil, sendBombs, false},
		{"new-errors", "1,000 new error types in each request", nil, sendNewErrors, true},
		{"large-stacks", "new errors with stacks of 100 KB", nil, sendLargeStacks, false},
		{"mixed-bodies", "new kinds, a stack of 100 KB, deep nesting and 1,000 keys in each request of under 1 MiB", nil, sendMixed, true},
		{"broken-gzip", "gzip bodies of 1,000 entries with a wrong checksum", nil, sendBroken, false},
		{"spread-errors", "new error types to 20 projects, each with a budget of its own", makeProjects, sendSpread, true},
		{"deep-entries", "six readers of a console page with deeply nested entries", storeDeep, readConsole, true},
		{"odd-years", "eight readers page through entries of the years 0 and 9999", storeOddYears, pageThroughYears, true},
		{"forged-cursors", "cursors of the year 0, forged and found", storeOddYears, readFromYearZero, false},
		{"endless-reads", "16 readers without a pause", storeLarge, readWithoutPause, false},
		{"broad-searches", "16 searches for words that none of 100 MB has", storeLarge, searchBroadly, true},
		{"slow-lines", "eight readers of all lines that read the first megabyte and then 16 KB a second", storeLarge, readLinesSlowly, true},
		{"tiny-requests", "64 requests of one entry at a time, each with a key, an environment and a connection's stream of its own", nil, sendTiny, false},
		{"slow-streams", "800 streams of HTTP/2 that each send a byte a second", nil, sendSlowStreams, false},
		{"long-names", "entries with 1,000 environments of 250 bytes in each request, and searches by them", nil, sendLongNames, true},
		{"refusals", "32 senders without a pause: keys that do not exist, unknown paths and methods, wrong passwords", nil, hammer, false},
		{"usage-exports", "32 exports of all usage and balances of this moment at a time", storeUsage, exportUsage, false},
		{"account-reads", "32 readers of an organization's own projects, keys and audit", makeProjects, readAccount, false},
		{"compared-groups", "32 readers of groups and of those similar to them", storeGroups, compareGroups, false},
		{"endless-bills", "32 askers for verifications, forecasts, statements, simulations, refusals", storeUsage, readBills, false},
		{"endless-pages", "32 readers of the console's pages", storeGroups, readPages, false},
		{"silent-sockets", "as many silent sockets as can be held, 5,000 new ones a second, from one network", nil, silence(1), false},
		{"spread-sockets", "the same from 250 networks", nil, silence(250), false},
		{"settings-frames", "SETTINGS without a pause on four connections of HTTP/2, without a key", nil, sendFrames(4, settingsFlood), false},
		{"reset-streams", "requests that are reset at once on eight connections, without a key", nil, sendFrames(8, resetFlood), false},
		{"empty-frames", "PING on four connections and empty DATA on four, without a key", nil, sendFrames(8, pingFlood, dataFlood), false},
		{"header-blocks", "headers of 8 KB that are reset at once on four connections, and headers that never end on four, without a key", nil,
			sendFrames(8, blockFlood, endlessFlood), false},
		{"protocol-errors", "32 clients that break the rules of HTTP/2 and HTTP/1 and connect again, without a key", nil, breakRules, false},
		{"guessed-passwords", "sign-ins with wrong passwords from ever new networks", nil, guessPasswords, false},
		{"many-projects", "projects by an organization's own token", nil, createProjects, false},
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
