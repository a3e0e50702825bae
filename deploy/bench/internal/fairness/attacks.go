package fairness

import (
	"context"
	"fmt"
	"strings"
)

// An attack is one way in which a noisy tenant may disturb others.
type attack struct {
	name        string
	description string
	lawful      bool                                        // it stays within every limit, so it need not be refused; it still must not disturb others
	run         func(ctx context.Context, n *noisy) error   // until ctx ends; refusals are no errors
	prepare     []func(ctx context.Context, n *noisy) error // before the measurement
}

// attacks returns all attacks, in their order.
func attacks() []attack {
	prepared := func(all ...func(ctx context.Context, n *noisy) error) []func(ctx context.Context, n *noisy) error {
		return all
	}
	const lawful, forbidden = true, false
	return []attack{
		{"full-rate", "posts of 1,000 entries as fast as they are answered", lawful, asks(senders, fullRate), prepared(makeBodies)},
		{"unread-answers", "six readers of 1,000 large entries that read nothing", forbidden, leaveUnread, prepared(storeLarge)},
		{"endless-bodies", "13 gzip bodies of white space that never end", forbidden, asks(len(endless), endlessBody), prepared(packEndless)},
		{"invalid-bombs", "169 KB of gzip that are 127 MB of invalid entries", forbidden, asks(senders/2, packed), prepared(packBomb)},
		{"new-errors", "1,000 new error types in each request", lawful, asks(senders/2, manyErrors), nil},
		{"large-stacks", "new errors with stacks of 100 KB", forbidden, asks(senders/2, largeErrors), nil},
		{"mixed-bodies", "new kinds, a stack of 100 KB, deep nesting and 1,000 keys in each request of under 1 MiB", lawful, asks(senders, mixedBody), nil},
		{"broken-gzip", "gzip bodies of 1,000 entries with a wrong checksum", forbidden, asks(senders, packed), prepared(packBroken)},
		{"spread-errors", "new error types to 20 projects, each with a budget of its own", lawful, asks(senders/2, spreadErrors), prepared(makeProjects)},
		{"deep-entries", "six readers of a console page with deeply nested entries", lawful, asks(6, pages("/logs")), prepared(storeDeep, signedIn)},
		{"odd-years", "eight readers page through entries of the years 0 and 9999", lawful, pageThroughYears, prepared(storeOddYears)},
		{"forged-cursors", "cursors of the year 0, forged and found", forbidden, readFromYearZero, prepared(storeOddYears)},
		{"endless-reads", "16 readers without a pause", forbidden, asks(16, lists), prepared(storeLarge)},
		{"broad-searches", "16 searches for words that none of 100 MB has", lawful, asks(16, searches), prepared(storeLarge)},
		{"slow-lines", "eight readers of all lines that read the first megabyte and then 16 KB a second", lawful, readLinesSlowly, prepared(storeLarge)},
		{"tiny-requests", "64 requests of one entry at a time, each with a key, an environment and a connection's stream of its own",
			forbidden, asks(64, tinyRequest), prepared(multiplex(1))},
		{"slow-streams", "800 streams of HTTP/2 that each send a byte a second", forbidden, asks(800, slowBody), prepared(multiplex(8))},
		{"long-names", "entries with 1,000 environments of 250 bytes in each request, and searches by them", lawful, asks(senders, longNames), nil},
		{"refusals", "32 senders without a pause: keys that do not exist, unknown paths and methods, wrong passwords", forbidden, asks(32, refusals), nil},
		{"usage-exports", "32 exports of all usage and balances of this moment at a time", forbidden, asks(32, exports), prepared(storeUsage)},
		{"account-reads", "32 readers of an organization's own projects, keys and audit", forbidden, asks(32, accountReads), prepared(makeProjects)},
		{"compared-groups", "32 readers of groups and of those similar to them", forbidden, asks(32, comparedGroups), prepared(storeGroups)},
		{"endless-bills", "32 askers for verifications, forecasts, statements, simulations, refusals", forbidden, asks(32, bills), prepared(storeUsage)},
		{"endless-pages", "32 readers of the console's pages", forbidden,
			asks(32, pages("/usage", "/usage/refusals", "/usage/plan", "/usage/statements", "/errors", "/logs?q=nothing", "/settings", "/settings/projects")),
			prepared(storeGroups, signedIn)},
		{"silent-sockets", "as many silent sockets as can be held, 5,000 new ones a second, from one network", forbidden, silence(1), nil},
		{"spread-sockets", "the same from 250 networks", forbidden, silence(250), nil},
		{"settings-frames", "SETTINGS without a pause on four connections of HTTP/2, without a key", forbidden, sendFrames(4, settingsFlood), nil},
		{"reset-streams", "requests that are reset at once on eight connections, without a key", forbidden, sendFrames(8, resetFlood), nil},
		{"empty-frames", "PING on four connections and empty DATA on four, without a key", forbidden, sendFrames(8, pingFlood, dataFlood), nil},
		{"header-blocks", "headers of 8 KB that are reset at once on four connections, and headers that never end on four, without a key", forbidden,
			sendFrames(8, blockFlood, endlessFlood), nil},
		{"protocol-errors", "32 clients that break the rules of HTTP/2 and HTTP/1 and connect again, without a key", forbidden, breakRules, nil},
		{"guessed-passwords", "sign-ins with wrong passwords from ever new networks", forbidden, asks(32, guesses), nil},
		{"many-projects", "projects by an organization's own token", forbidden, asks(senders, newProjects), nil},
	}
}

// senders is how many requests a noisy sender has in flight.
const senders = 8

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

// chosen returns the attacks to measure.
func (c *Command) chosen() (chosen []attack, err error) {
	if len(c.Attacks) == 0 {
		return attacks(), nil
	}
	for _, name := range c.Attacks {
		a, err := attackNamed(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, a)
	}
	return chosen, nil
}
