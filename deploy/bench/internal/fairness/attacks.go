package fairness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/measure"
)

// An attack is one way in which a noisy tenant may disturb others.
type attack struct {
	name        string
	description string
	lawful      bool   // it stays within every limit, so it need not be refused; it still must not disturb others
	run         step   // until ctx ends; refusals are no errors
	prepare     []step // before the measurement
}

type step = func(ctx context.Context, n *noisy) error

// senders is how many requests a noisy sender has in flight.
const senders = 8

const lawful, forbidden = true, false

const allUsage = "GET /organizations/{organization}/usage?bucket=hour&by=project,key,environment,outcome&from={year}&to={second}"

// attacks are all attacks, in their order.
var attacks = []attack{
	{"full-rate", "posts of 1,000 entries as fast as they are answered", lawful, asks(senders, fullRate), []step{makeBodies}},
	{"unread-answers", "six readers of 1,000 large entries that read nothing", forbidden, asks(6, reads(leaveUnread, inTurn(byKey, "GET /logs?limit=1000"))), []step{stores(20, large)}},
	{"endless-bodies", "13 gzip bodies of white space that never end", forbidden, asks(len(endless), endlessBody), []step{packEndless}},
	{"invalid-bombs", "169 KB of gzip that are 127 MB of invalid entries", forbidden, asks(senders/2, packed), []step{packBomb}},
	{"new-errors", "1,000 new error types in each request", lawful, asks(senders/2, manyErrors), nil},
	{"large-stacks", "new errors with stacks of 100 KB", forbidden, asks(senders/2, largeErrors), nil},
	{"mixed-bodies", "new kinds, a stack of 100 KB, deep nesting and 1,000 keys in each request of under 1 MiB", lawful, asks(senders, mixedBody), nil},
	{"broken-gzip", "gzip bodies of 1,000 entries with a wrong checksum", forbidden, asks(senders, packed), []step{packBroken}},
	{"spread-errors", "new error types to 20 projects, each with a budget of its own", lawful, asks(senders/2, spreadErrors), []step{makeProjects}},
	{"deep-entries", "six readers of a console page with deeply nested entries", lawful, asks(6, inTurn(byMember, "GET /logs")), []step{stores(5, deep), signedIn}},
	{"odd-years", "eight readers page through entries of the years 0 and 9999", lawful, asks(8, inTurn(byKey,
		"GET /logs?limit=1000&order=desc{cursor}", "GET /logs?limit=1000&order=asc{cursor}")), []step{stores(30, oddYears)}},
	{"forged-cursors", "cursors of the year 0, forged and found", forbidden, asks(8, inTurn(byKey,
		"GET /logs?limit=1&order=asc&cursor="+yearZero, "GET /logs?limit=1&order=asc&q=answered{cursor}")), []step{stores(30, oddYears)}},
	{"endless-reads", "16 readers without a pause", forbidden, asks(16, inTurn(byKey,
		"GET /logs?limit=1000", "GET /logs?limit=100&q=nothing", "GET /logs?limit=1000&order=asc", "GET /projects/{project}/error-groups?q=nothing")),
		[]step{stores(20, large)}},
	{"broad-searches", "16 searches for words that none of 100 MB has", lawful, asks(16, inTurn(byKey,
		"GET /logs?limit=1000&q=large+entry+{word}&order=asc", "GET /logs?limit=1000&q=large+entry+{word}&order=desc")), []step{stores(20, large)}},
	{"slow-lines", "eight readers of all lines that read the first megabyte and then 16 KB a second", lawful,
		asks(8, reads(readSlowly, inTurn(accepting("application/x-ndjson", byKey), "GET /logs"))), []step{stores(20, large)}},
	{"tiny-requests", "64 requests of one entry at a time, each with a key, an environment and a connection's stream of its own",
		forbidden, asks(64, tinyRequest), []step{multiplex(1)}},
	{"slow-streams", "800 streams of HTTP/2 that each send a byte a second", forbidden, asks(800, slowBody), []step{multiplex(8)}},
	{"long-names", "entries with 1,000 environments of 250 bytes in each request, and searches by them", lawful, asks(senders, longNames), nil},
	{"refusals", "32 senders without a pause: keys that do not exist, unknown paths and methods, wrong passwords", forbidden, asks(32, refusals), nil},
	{"usage-exports", "32 exports of all usage and balances of this moment at a time", forbidden, asks(32, inTurn(accepting("text/csv, application/json", byBilling),
		"GET /organizations/{organization}/balance?at={now}", "GET /organizations/{organization}/entries?from={year}&to={second}", allUsage, allUsage)),
		[]step{stores(50, used)}},
	{"account-reads", "32 readers of an organization's own projects, keys and audit", forbidden, asks(32, inTurn(byAdmin,
		"GET /audit-events?format=csv&organization={organization}", "GET /audit-events?limit=100&organization={organization}",
		"GET /projects?limit=100&organization={organization}", "GET /api-keys?limit=100&organization={organization}")), []step{makeProjects}},
	{"compared-groups", "32 readers of groups and of those similar to them", forbidden,
		asks(32, inTurn(byKey, "GET /error-groups/{group}", "GET /error-groups/{group}/similar")), []step{stores(8, similar), awaitGroups}},
	{"endless-bills", "32 askers for verifications, forecasts, statements, simulations, refusals", forbidden, asks(32, inTurn(byBilling,
		"GET /organizations/{organization}/verification", "GET /organizations/{organization}/statements?limit=100",
		"GET /organizations/{organization}/forecast", `POST /organizations/{organization}/dry-run {"bytes":1000}`,
		`POST /organizations/{organization}/simulation {"tier":"scale"}`, "GET /organizations/{organization}/grants",
		"GET /organizations/{organization}/entries?reason=charged&limit=100&from={yesterday}",
		"GET /organizations/{organization}/refusals?limit=100&from={yesterday}")), []step{stores(50, used)}},
	{"endless-pages", "32 readers of the console's pages", forbidden, asks(32, inTurn(byMember, "GET /usage", "GET /usage/refusals", "GET /usage/plan",
		"GET /usage/statements", "GET /errors", "GET /logs?q=nothing", "GET /settings", "GET /settings/projects")), []step{stores(8, similar), awaitGroups, signedIn}},
	{"silent-sockets", "as many silent sockets as can be held, 5,000 new ones a second, from one network", forbidden, silence(1), nil},
	{"spread-sockets", "the same from 250 networks", forbidden, silence(250), nil},
	{"settings-frames", "SETTINGS without a pause on four connections of HTTP/2, without a key", forbidden, sends(4, settingsFlood), nil},
	{"reset-streams", "requests that are reset at once on eight connections, without a key", forbidden, sends(8, resetFlood), nil},
	{"empty-frames", "PING on four connections and empty DATA on four, without a key", forbidden, sends(8, pingFlood, dataFlood), nil},
	{"header-blocks", "headers of 8 KB that are reset at once on four connections, and headers that never end on four, without a key", forbidden,
		sends(8, blockFlood, endlessFlood), nil},
	{"protocol-errors", "32 clients that break the rules of HTTP/2 and HTTP/1 and connect again, without a key", forbidden,
		sends(32, wrongFrame, noRequest), nil},
	{"guessed-passwords", "sign-ins with wrong passwords from ever new networks", forbidden, asks(32, guesses), nil},
	{"many-projects", "projects by an organization's own token", forbidden,
		asks(senders, inTurn(byAdmin, `POST /projects {"organization":"{organization}","name":"project {i}"}`)), nil},
}

// Attacks lists the names of all attacks.
func Attacks() (names []string) {
	for _, a := range attacks {
		names = append(names, a.name)
	}
	return names
}

// chosen returns the attacks of these names; all of them without a name.
func chosen(names []string) (found []attack, err error) {
	if len(names) == 0 {
		return attacks, nil
	}
	for _, name := range names {
		i := slices.Index(Attacks(), name)
		if i < 0 {
			return nil, fmt.Errorf("there is no attack %q: choose among %s", name, strings.Join(Attacks(), ", "))
		}
		found = append(found, attacks[i])
	}
	return found, nil
}

// An ask is a request of an attack.
type ask struct {
	method, address string
	header          http.Header
	body            io.Reader
	by              *http.Client // nil: one of HTTP/1 without cookies
	rude            bool         // it does not even rest a moment when it is refused
	read            reading      // nil: the answer is read to its end
}

// An asking returns what a worker asks for next; i counts all requests.
type asking = func(n *noisy, worker int, i int64) ask

// A reading is what happens to an answer.
type reading = func(ctx context.Context, n *noisy, answer *http.Response)

// asks returns an attack by so many workers that each ask for what next
// returns, as fast as they are answered.
func asks(workers int, next asking) step {
	return func(ctx context.Context, n *noisy) error {
		var i atomic.Int64
		return repeat(ctx, workers, func(worker int) error {
			a := next(n, worker, i.Add(1))
			answer, err := a.do(ctx, n)
			if err != nil {
				if ctx.Err() == nil {
					n.outcome.count("closed") // a broken connection
				}
				return err
			}
			defer answer.Body.Close()
			if a.read != nil {
				a.read(ctx, n, answer)
			} else if tail := n.outcome.read(answer); answer.StatusCode == http.StatusOK {
				n.cursors[worker] = cursorOf(tail)
			}
			if answer.StatusCode == http.StatusTooManyRequests && !a.rude {
				lifecycle.Pause(ctx, obeyed)
			}
			return nil
		})
	}
}

// obeyed limits a refused worker's wait: the client is impolite, but does
// not only burn its own processor.
const obeyed = 50 * time.Millisecond

func (a ask) do(ctx context.Context, n *noisy) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, a.method, a.address, a.body)
	if err != nil {
		return nil, err
	}
	if a.header != nil {
		r.Header = a.header
	}
	return cmp.Or(a.by, n.plain).Do(r)
}

// Who asks.
func byKey(n *noisy) ask     { return n.with("X-Api-Key", n.Tenant.Key) }
func byAdmin(n *noisy) ask   { return n.with("Authorization", "Bearer "+n.AdminToken) }
func byBilling(n *noisy) ask { return n.with("Authorization", "Bearer "+n.Tenant.Billing) }
func byMember(n *noisy) ask  { return ask{address: n.Env.ConsoleURL, by: n.browser.Client} }

func (n *noisy) with(name, credential string) ask {
	return ask{address: n.Env.BaseURL, header: http.Header{name: {credential}, "Content-Type": {"application/json"}}}
}

// accepting asks for other types of content.
func accepting(types string, who func(n *noisy) ask) func(n *noisy) ask {
	return func(n *noisy) ask {
		a := who(n)
		a.header.Set("Accept", types)
		return a
	}
}

// reads does something else with answers than read them.
func reads(read reading, next asking) asking {
	return func(n *noisy, worker int, i int64) ask {
		a := next(n, worker, i)
		a.read = read
		return a
	}
}

// inTurn asks for these, each worker for one of them again and again. Names
// in braces stand for what is the tenant's own, or new each time.
func inTurn(who func(n *noisy) ask, requests ...string) asking {
	return func(n *noisy, worker int, i int64) ask {
		group, cursor, now := "", "", time.Now().UTC()
		if len(n.groups) > 0 {
			group = n.groups[worker%len(n.groups)]
		}
		if n.cursors[worker] != "" {
			cursor = "&cursor=" + n.cursors[worker]
		}
		text := strings.NewReplacer(
			"{organization}", n.Tenant.Organization, "{project}", n.Tenant.Project, "{group}", group, "{i}", fmt.Sprint(i), "{word}", subject.Letters(i),
			"{now}", now.Format(time.RFC3339Nano), "{second}", now.Format(time.RFC3339), "{yesterday}", now.AddDate(0, 0, -1).Format(time.RFC3339),
			"{year}", now.AddDate(-1, 0, 1).Format(time.RFC3339), "{cursor}", cursor,
		).Replace(requests[worker%len(requests)])
		method, rest, _ := strings.Cut(text, " ")
		path, body, _ := strings.Cut(rest, " ")
		a := who(n)
		a.method, a.address, a.body = method, a.address+path, strings.NewReader(body)
		return a
	}
}

var nextCursor = regexp.MustCompile(`"next_cursor":"([^"]+)"`)

// cursorOf finds that of the next page at the end of a page; empty: it is the last.
func cursorOf(tail []byte) string {
	if found := nextCursor.FindSubmatch(tail); found != nil {
		return string(found[1])
	}
	return ""
}

// yearZero is a forged cursor before everything.
var yearZero = base64.RawURLEncoding.EncodeToString([]byte(`{"b":"` + strings.Repeat("0", 32) + `","i":0,"n":0,"s":-62167219200}`))

func (n *noisy) post(body io.Reader, more ...string) ask {
	a := byKey(n)
	a.method, a.address, a.body = http.MethodPost, a.address+"/logs", body
	for i := 0; i < len(more); i += 2 {
		a.header.Set(more[i], more[i+1])
	}
	return a
}

func (n *noisy) postBytes(body []byte, more ...string) ask {
	return n.post(bytes.NewReader(body), more...)
}

func makeBodies(_ context.Context, n *noisy) error {
	for range senders {
		n.bodies = append(n.bodies, subject.NewBody(1000))
	}
	return nil
}

func fullRate(n *noisy, worker int, i int64) ask {
	n.bodies[worker].Stamp(time.Now(), i*1000)
	return n.postBytes(n.bodies[worker].Text)
}

func manyErrors(n *noisy, _ int, i int64) ask  { return n.postBytes(newErrors(1000, i*1000, noStack)) }
func largeErrors(n *noisy, _ int, i int64) ask { return n.postBytes(newErrors(100, i*100, largeStack)) }
func mixedBody(n *noisy, _ int, i int64) ask   { return n.postBytes(mixed(i * mixedErrors)) }
func packed(n *noisy, _ int, _ int64) ask      { return n.postBytes(n.packed, "Content-Encoding", "gzip") }

func spreadErrors(n *noisy, _ int, i int64) ask {
	return n.postBytes(newErrors(1000, i*1000, noStack), "X-Api-Key", n.keys[i%int64(len(n.keys))])
}

// makeProjects creates projects, each with a key.
func makeProjects(ctx context.Context, n *noisy) error {
	const projects = 20
	for i := range projects {
		key, err := subject.NewKey(ctx, n.api, n.AdminToken, n.Tenant.Organization, fmt.Sprint("spread ", i))
		if err != nil {
			return err
		}
		n.keys = append(n.keys, key.Key)
	}
	return nil
}

// longNames are entries in ever new environments, and searches by them.
func longNames(n *noisy, worker int, i int64) ask {
	name := func(number int64) string { return strings.Repeat("n", 240) + subject.Letters(number) }
	if worker%2 == 0 {
		return inTurn(byKey, "GET /logs?limit=1000&environment="+name(i*500))(n, 0, i)
	}
	return n.postBytes(batch(1000, func(k int64) string {
		return fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","environment":"%s","error":{"type":"Error"}}`, now(), name(i*1000+k))
	}))
}

// endless are the sizes of the endless bodies, in megabytes: together
// they fill half a gigabyte.
var endless = []int{127, 127, 127, 15, 15, 15, 15, 4, 4, 4, 1, 1, 1}

func endlessBody(n *noisy, worker int, _ int64) ask {
	return n.post(written(func(out io.Writer) error { return n.endless.inflate(out, endless[worker]) }), "Content-Encoding", "gzip")
}

func tinyRequest(n *noisy, _ int, i int64) ask {
	a := n.postBytes(batch(1, func(int64) string {
		return fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","environment":"e%d","error":{"type":"%sError"}}`, now(), i, subject.Letters(i))
	}), "Idempotency-Key", fmt.Sprint(i, strings.Repeat("k", 200)))
	a.by = n.streams[0]
	return a
}

// slowBody has a byte a second.
func slowBody(n *noisy, worker int, _ int64) ask {
	a := n.post(written(func(out io.Writer) (err error) {
		for text := `{"logs":[` + strings.Repeat(" ", 1<<10); text != "" && err == nil; text = text[1:] {
			_, err = io.WriteString(out, text[:1])
			time.Sleep(time.Second)
		}
		return err
	}))
	a.by = n.streams[worker%len(n.streams)]
	return a
}

// multiplex makes clients that send requests as streams of a connection.
func multiplex(connections int) step {
	return func(_ context.Context, n *noisy) error {
		for range connections {
			n.streams = append(n.streams, subject.Over(&http.Transport{TLSClientConfig: n.browser.TLS, ForceAttemptHTTP2: true}))
		}
		return nil
	}
}

// written is a body that write makes while it is sent.
func written(write func(out io.Writer) error) io.Reader {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(write(writer)) }()
	return reader
}

// refusals are of unknown keys, paths and methods, and of wrong passwords.
func refusals(n *noisy, worker int, i int64) (a ask) {
	switch worker % 4 {
	case 0:
		a = n.post(strings.NewReader(`{"logs":[]}`), "X-Api-Key", fmt.Sprint(n.Tenant.Key, i))
	case 1:
		a = ask{method: http.MethodGet, address: fmt.Sprint(n.Env.BaseURL, "/none/", i)}
	case 2:
		a = ask{method: http.MethodDelete, address: n.Env.BaseURL + "/logs"}
	default:
		a = n.guess(n.Env.ConsoleEmail)
	}
	a.rude = true
	return a
}

// guesses are sign-ins as a member and as an unknown person, each from
// another network.
func guesses(n *noisy, _ int, i int64) ask {
	email := n.Env.ConsoleEmail
	if i%2 == 0 {
		email = fmt.Sprintf("nobody%d@example.com", i)
	}
	a := n.guess(email)
	a.rude, a.by = true, subject.Over(&http.Transport{
		DisableKeepAlives: true, TLSClientConfig: n.browser.TLS, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return n.browser.Dial(ctx, network(rand.IntN(1<<22)))
		},
	})
	return a
}

// guess is a sign-in with a wrong password.
func (n *noisy) guess(email string) ask {
	form := url.Values{"email": {email}, "password": {"correct horse " + email}}
	return ask{method: http.MethodPost, address: n.Env.ConsoleURL + "/sign-in", body: strings.NewReader(form.Encode()),
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}
}

func signedIn(ctx context.Context, n *noisy) error { return n.browser.SignInMember(ctx) }

// stores posts so many bodies and waits until an entry can be read.
func stores(bodies int64, body func(i int64) []byte) step {
	return func(ctx context.Context, n *noisy) error {
		for i := range bodies {
			if _, err := n.api.Deliver(ctx, n.Tenant.Key, client.Batch{Body: body(i), IdempotencyKey: fmt.Sprint("stored ", i)}); err != nil {
				return err
			}
		}
		return measure.Until(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
			page, err := n.api.Logs(ctx, n.Tenant.Key, client.LogsQuery{Project: n.Tenant.Project, Limit: 1})
			return len(page.Items) > 0, err
		})
	}
}

// awaitGroups waits until so many errors have groups that each worker has its
// own.
func awaitGroups(ctx context.Context, n *noisy) error {
	const least = 100
	return measure.Until(ctx, 100*time.Millisecond, func(ctx context.Context) (bool, error) {
		groups, err := n.api.ErrorGroups(ctx, n.Tenant.Key, n.Tenant.Project)
		n.groups = n.groups[:0]
		for _, g := range groups {
			n.groups = append(n.groups, g.ID)
		}
		return len(n.groups) >= least, err
	})
}
