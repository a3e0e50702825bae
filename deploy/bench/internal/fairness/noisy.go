package fairness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// A noisy tenant attacks.
type noisy struct {
	job

	api     *client.Client
	browser *browser
	outcome outcome

	// What an attack has prepared.
	keys    []string // of further projects
	groups  []string
	bodies  []*subject.Body
	packed  []byte // a gzip body
	endless endlessParts
	streams []*http.Client // each with a connection of its own
}

// repeat runs workers that each repeat one thing until ctx ends. After a
// failure without an answer they rest, so that they do not spin.
func repeat(ctx context.Context, workers int, once func(worker int) error) error {
	_, err := measure.Load{Workers: workers}.Run(ctx, func(ctx context.Context, worker int, _ time.Time) error {
		if once(worker) != nil {
			lifecycle.Pause(ctx, 20*time.Millisecond)
		}
		return nil
	})
	return err
}

// An ask is a request of an attack.
type ask struct {
	method, address string
	header          http.Header
	body            io.Reader
	by              *http.Client // nil: one of HTTP/1 without cookies
	rude            bool         // it does not even rest a moment when it is refused
}

func (a ask) request(ctx context.Context) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, a.method, a.address, a.body)
	if err == nil && a.header != nil {
		r.Header = a.header
	}
	return r, err
}

// asks returns an attack by so many workers that each ask for what next
// returns, as fast as they are answered; i counts all.
func asks(workers int, next func(n *noisy, worker int, i int64) ask) func(context.Context, *noisy) error {
	return func(ctx context.Context, n *noisy) error {
		plain := &http.Client{Transport: n.browser.Transport, CheckRedirect: stay}
		var i atomic.Int64
		return repeat(ctx, workers, func(worker int) error {
			a := next(n, worker, i.Add(1))
			if a.by == nil {
				a.by = plain
			}
			return n.send(ctx, a)
		})
	}
}

// send counts the answer; a broken connection counts as closed.
func (n *noisy) send(ctx context.Context, a ask) error {
	r, err := a.request(ctx)
	if err != nil {
		return err
	}
	answer, err := a.by.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			n.outcome.count("closed")
		}
		return err
	}
	n.outcome.read(answer)
	if answer.StatusCode == http.StatusTooManyRequests && !a.rude {
		lifecycle.Pause(ctx, obeyed)
	}
	return nil
}

// obeyed limits a refused worker's wait: the client is impolite, but does
// not only burn its own processor.
const obeyed = 50 * time.Millisecond

func (n *noisy) post(body io.Reader, more ...string) ask {
	header := http.Header{"X-Api-Key": {n.Tenant.Key}, "Content-Type": {"application/json"}}
	a := ask{method: http.MethodPost, address: n.BaseURL + "/logs", body: body, header: header}
	for i := 0; i < len(more); i += 2 {
		a.header.Set(more[i], more[i+1])
	}
	return a
}

func (n *noisy) postBytes(body []byte) ask { return n.post(bytes.NewReader(body)) }

func (n *noisy) get(path string) ask {
	return ask{method: http.MethodGet, address: n.BaseURL + path, header: http.Header{"X-Api-Key": {n.Tenant.Key}}}
}

func (n *noisy) with(token, method, path, body string) ask {
	return ask{method: method, address: n.BaseURL + path, body: strings.NewReader(body),
		header: http.Header{"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}}}
}

func (n *noisy) ofOrganization(path string) string {
	return "/organizations/" + n.Tenant.Organization + path
}

func signInAs(at job, email, password string) ask {
	form := url.Values{"email": {email}, "password": {password}}
	return ask{method: http.MethodPost, address: at.ConsoleURL + "/sign-in", body: strings.NewReader(form.Encode()),
		header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}
}

// written is a body that write makes while it is sent.
func written(write func(out io.Writer) error) io.Reader {
	reader, writer := io.Pipe()
	go func() { _ = writer.CloseWithError(write(writer)) }()
	return reader
}

// network returns a local address in its own client network.
func network(number int) net.IP {
	return net.IPv4(127, byte(1+number>>16&0x3f), byte(number>>8), byte(2+number%250))
}

// store posts bodies and waits until an entry can be read.
func (n *noisy) store(ctx context.Context, bodies [][]byte) error {
	for _, body := range bodies {
		for {
			_, err := n.api.Post(ctx, n.Tenant.Key, client.Batch{Body: body})
			var problem *client.Problem
			if errors.As(err, &problem) && problem.Status == http.StatusTooManyRequests {
				lifecycle.Pause(ctx, problem.RetryAfter)
				continue
			}
			if err != nil {
				return err
			}
			break
		}
	}
	for ctx.Err() == nil {
		page, err := n.api.Logs(ctx, n.Tenant.Key, client.LogsQuery{Project: n.Tenant.Project, Limit: 1})
		if err != nil || len(page.Items) > 0 {
			return err
		}
		lifecycle.Pause(ctx, 100*time.Millisecond)
	}
	return ctx.Err()
}

func signedIn(ctx context.Context, n *noisy) error { return n.browser.signIn(ctx) }

// makeProjects creates projects, each with a key.
func makeProjects(ctx context.Context, n *noisy) error {
	const projects = 20
	for i := range projects {
		project, err := n.api.CreateProject(ctx, n.AdminToken, n.Tenant.Organization, fmt.Sprint("spread ", i))
		if err != nil {
			return err
		}
		key, err := n.api.CreateAPIKey(ctx, n.AdminToken, project.ID, "prod", "spread")
		if err != nil {
			return err
		}
		n.keys = append(n.keys, key.Key)
	}
	return nil
}

// multiplex makes clients that send requests as streams of a connection.
func multiplex(connections int) func(context.Context, *noisy) error {
	return func(_ context.Context, n *noisy) error {
		for range connections {
			n.streams = append(n.streams, &http.Client{Transport: &http.Transport{TLSClientConfig: n.browser.tls, ForceAttemptHTTP2: true}, CheckRedirect: stay})
		}
		return nil
	}
}
