package fairness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
)

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

func spreadErrors(n *noisy, _ int, i int64) ask {
	return n.post(bytes.NewReader(newErrors(1000, i*1000, noStack)), "X-Api-Key", n.keys[i%int64(len(n.keys))])
}

// longNames are entries in ever new environments, and searches by them.
func longNames(n *noisy, worker int, i int64) ask {
	name := func(number int64) string { return strings.Repeat("n", 240) + subject.Letters(number) }
	if worker%2 == 0 {
		return n.get("/logs?limit=1000&environment=" + name(i*500))
	}
	entries := make([]string, 1000)
	for k := range entries {
		entries[k] = fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","environment":"%s","error":{"type":"Error"}}`, now(), name(i*1000+int64(k)))
	}
	return n.postBytes(batch(entries))
}

func packed(n *noisy, _ int, _ int64) ask {
	return n.post(bytes.NewReader(n.packed), "Content-Encoding", "gzip")
}

// endless are the sizes of the endless bodies, in megabytes: together
// they fill half a gigabyte.
var endless = []int{127, 127, 127, 15, 15, 15, 15, 4, 4, 4, 1, 1, 1}

func endlessBody(n *noisy, worker int, _ int64) ask {
	return n.post(written(func(out io.Writer) error { return n.endless.inflate(out, endless[worker]) }), "Content-Encoding", "gzip")
}

func tinyRequest(n *noisy, _ int, i int64) ask {
	entry := fmt.Sprintf(`{"timestamp":"%s","level":"error","message":"m","environment":"e%d","error":{"type":"%sError"}}`, now(), i, subject.Letters(i))
	a := n.post(bytes.NewReader(batch([]string{entry})), "Idempotency-Key", fmt.Sprint(i, strings.Repeat("k", 200)))
	a.by = n.streams[0]
	return a
}

// slowBody has a byte a second.
func slowBody(n *noisy, worker int, _ int64) ask {
	a := n.post(written(func(out io.Writer) error {
		for text := `{"logs":[` + strings.Repeat(" ", 1<<10); text != ""; text = text[1:] {
			if _, err := io.WriteString(out, text[:1]); err != nil {
				return err
			}
			time.Sleep(time.Second)
		}
		return nil
	}))
	a.by = n.streams[worker%len(n.streams)]
	return a
}

func lists(n *noisy, worker int, _ int64) ask {
	paths := []string{
		"/logs?limit=1000", "/logs?limit=100&q=nothing", "/logs?limit=1000&order=asc", "/projects/" + n.Tenant.Project + "/error-groups?q=nothing",
	}
	return n.get(paths[worker%len(paths)])
}

func searches(n *noisy, _ int, i int64) ask {
	return n.get("/logs?limit=1000&q=large+entry+" + subject.Letters(i) + "&order=" + []string{"asc", "desc"}[i%2])
}

// exports are of all usage of a year, of current balances, which wait for
// pending bookings, and of transfers.
func exports(n *noisy, worker int, _ int64) ask {
	now := time.Now().UTC()
	query := url.Values{"from": {now.AddDate(-1, 0, 1).Format(time.RFC3339)}, "to": {now.Format(time.RFC3339)}}
	path := "/usage?bucket=hour&by=project,key,environment,outcome&" + query.Encode()
	switch worker % 4 {
	case 0:
		path = "/balance?at=" + url.QueryEscape(now.Format(time.RFC3339Nano))
	case 1:
		path = "/entries?" + query.Encode()
	}
	a := n.with(n.Tenant.Billing, http.MethodGet, n.ofOrganization(path), "")
	a.header.Set("Accept", "text/csv, application/json")
	return a
}

func accountReads(n *noisy, worker int, _ int64) ask {
	paths := []string{"/audit-events?format=csv&", "/audit-events?limit=100&", "/projects?limit=100&", "/api-keys?limit=100&"}
	return n.with(n.AdminToken, http.MethodGet, paths[worker%len(paths)]+"organization="+n.Tenant.Organization, "")
}

func comparedGroups(n *noisy, worker int, _ int64) ask {
	return n.get("/error-groups/" + n.groups[worker%len(n.groups)] + []string{"", "/similar"}[worker%2])
}

// bills are all that the ledger computes for an answer.
func bills(n *noisy, worker int, _ int64) ask {
	since := "&from=" + time.Now().UTC().Add(-24*time.Hour).Format(time.RFC3339)
	all := []struct{ method, path, body string }{
		{http.MethodGet, "/verification", ""}, {http.MethodGet, "/statements?limit=100", ""}, {http.MethodGet, "/forecast", ""},
		{http.MethodPost, "/dry-run", `{"bytes":1000}`}, {http.MethodPost, "/simulation", `{"tier":"scale"}`},
		{http.MethodGet, "/grants", ""}, {http.MethodGet, "/entries?reason=charged&limit=100" + since, ""}, {http.MethodGet, "/refusals?limit=100" + since, ""},
	}
	b := all[worker%len(all)]
	return n.with(n.Tenant.Billing, b.method, n.ofOrganization(b.path), b.body)
}

// pages are those of the console, for a member.
func pages(paths ...string) func(n *noisy, worker int, i int64) ask {
	return func(n *noisy, worker int, _ int64) ask {
		return ask{method: http.MethodGet, address: n.ConsoleURL + paths[worker%len(paths)], by: n.browser.Client}
	}
}

// refusals are of unknown keys, paths and methods, and of wrong passwords.
func refusals(n *noisy, worker int, i int64) (a ask) {
	switch worker % 4 {
	case 0:
		a = n.post(strings.NewReader(`{"logs":[]}`), "X-Api-Key", fmt.Sprint(n.Tenant.Key, i))
	case 1:
		a = ask{method: http.MethodGet, address: fmt.Sprint(n.BaseURL, "/none/", i)}
	case 2:
		a = ask{method: http.MethodDelete, address: n.BaseURL + "/logs"}
	default:
		a = signInAs(n.job, n.ConsoleEmail, "correct horse "+n.ConsoleEmail)
	}
	a.rude = true
	return a
}

// guesses are sign-ins as a member and as an unknown person, each from
// another network.
func guesses(n *noisy, _ int, i int64) ask {
	email := n.ConsoleEmail
	if i%2 == 0 {
		email = fmt.Sprintf("nobody%d@example.com", i)
	}
	a := signInAs(n.job, email, "correct horse "+email)
	a.rude, a.by = true, &http.Client{CheckRedirect: stay, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: n.browser.tls, DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return n.browser.dial(ctx, network(rand.IntN(1<<22)))
		},
	}}
	return a
}

func newProjects(n *noisy, _ int, i int64) ask {
	return n.with(n.AdminToken, http.MethodPost, "/projects", fmt.Sprintf(`{"organization":%q,"name":"project %d"}`, n.Tenant.Organization, i))
}

// storeUsage sends entries in 50 environments, so that there is usage.
func storeUsage(ctx context.Context, n *noisy) error {
	bodies := make([][]byte, 50)
	for i := range bodies {
		bodies[i] = batch([]string{fmt.Sprintf(`{"timestamp":"%s","level":"info","message":"m","environment":"e%d"}`, now(), i)})
	}
	return n.store(ctx, bodies)
}

// storeGroups sends errors whose kinds and stacks differ in a word, within
// one budget of new groups, and waits until they have groups.
func storeGroups(ctx context.Context, n *noisy) error {
	const stored, perBody, read = 800, 100, 100
	var bodies [][]byte
	for first := int64(0); first < stored; first += perBody {
		bodies = append(bodies, newErrors(perBody, first, similarStack))
	}
	if err := n.store(ctx, bodies); err != nil {
		return err
	}
	for len(n.groups) < read {
		groups, err := n.api.ErrorGroups(ctx, n.Tenant.Key, n.Tenant.Project)
		if err != nil {
			return errors.Join(errors.New("cannot list the groups"), err)
		}
		n.groups = n.groups[:0]
		for _, g := range groups {
			n.groups = append(n.groups, g.ID)
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil
}
