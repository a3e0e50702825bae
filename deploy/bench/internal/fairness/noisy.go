package fairness

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
)

// A job is the attacking process's standard input, instead of a command line.
type job struct {
	Attack       string         `json:"attack"`
	BaseURL      string         `json:"base_url"`
	CAFile       string         `json:"ca_file"`
	Tenant       measure.Tenant `json:"tenant"`
	AdminToken   string         `json:"admin_token"` // tenants:admin of the tenant
	ConsoleURL   string         `json:"console_url"`
	ConsoleEmail string         `json:"console_email"` // a member of the tenant, whose password is also guessed
	ConsoleWord  string         `json:"console_password"`
}

// A noisy tenant attacks.
type noisy struct {
	job

	api     *client.Client
	http    *http.Client
	tls     *tls.Config
	host    string   // host:port of the installation
	keys    []string // of its further projects
	outcome Outcome
}

// prepared is the attacking process's line once it is ready.
const prepared = "prepared\n"

// Attack is the attacking process: it reads a job from in, prepares it,
// reports that to out, attacks from the next line of in until in ends,
// and writes its outcome.
func Attack(ctx context.Context, in io.Reader, out io.Writer) error {
	orders := json.NewDecoder(in)
	n := &noisy{}
	if err := orders.Decode(&n.job); err != nil {
		return fmt.Errorf("cannot read the job: %w", err)
	}
	chosen, err := attackNamed(n.Attack)
	if err != nil {
		return err
	}
	if err := n.connect(); err != nil {
		return err
	}
	if chosen.prepare != nil {
		if err := chosen.prepare(ctx, n); err != nil {
			return fmt.Errorf("cannot prepare %q: %w", n.Attack, err)
		}
	}
	if _, err := io.WriteString(out, prepared); err != nil {
		return err
	}
	var begin bool
	if err := orders.Decode(&begin); err != nil {
		return fmt.Errorf("cannot read when to begin: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, in)
		cancel()
	}()
	if err := chosen.run(ctx, n); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot attack with %q: %w", n.Attack, err)
	}
	return json.NewEncoder(out).Encode(&n.outcome)
}

func (n *noisy) connect() (err error) {
	if n.api, err = client.New(n.BaseURL, n.CAFile, 64); err != nil {
		return err
	}
	base, err := url.Parse(n.BaseURL)
	if err != nil {
		return fmt.Errorf("cannot read the address %q: %w", n.BaseURL, err)
	}
	n.host = base.Host
	if n.tls, err = trusting(n.CAFile, base.Hostname()); err != nil {
		return err
	}
	n.http = &http.Client{
		Transport: &http.Transport{TLSClientConfig: n.tls, MaxIdleConnsPerHost: 64},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	return nil
}

// dial opens a TLS connection from a local address; nil: any.
func (n *noisy) dial(ctx context.Context, from net.IP) (net.Conn, error) {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	if from != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: from}
	}
	return (&tls.Dialer{NetDialer: dialer, Config: n.tls}).DialContext(ctx, "tcp", n.host)
}

// pause is how long a worker rests after a failure without an answer,
// so that it does not spin.
const pause = 20 * time.Millisecond

// repeat runs workers that each repeat one thing until ctx ends.
func repeat(ctx context.Context, workers int, once func(worker int) error) error {
	var running sync.WaitGroup
	for worker := range workers {
		running.Go(func() {
			for ctx.Err() == nil {
				if once(worker) != nil {
					lifecycle.Pause(ctx, pause)
				}
			}
		})
	}
	running.Wait()
	return nil
}

// ask creates a request and sends it.
func (n *noisy) ask(ctx context.Context, method, address string, header http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header = header
	return n.send(ctx, n.http, r)
}

// send sends a request and counts the answer; a broken connection
// counts as closed.
func (n *noisy) send(ctx context.Context, by *http.Client, r *http.Request) error {
	answer, err := by.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			n.outcome.count("closed")
		}
		return err
	}
	n.outcome.read(answer)
	n.obey(ctx, answer.StatusCode)
	return nil
}

// obeyed limits a refused worker's wait: the client is rude, but does
// not only burn its own processor.
const obeyed = 50 * time.Millisecond

func (n *noisy) obey(ctx context.Context, status int) {
	if status == http.StatusTooManyRequests {
		lifecycle.Pause(ctx, obeyed)
	}
}

// post posts a body of entries unchanged.
func (n *noisy) post(ctx context.Context, body []byte, encoding string) error {
	return n.postBy(ctx, n.Tenant.Key, body, encoding)
}

func (n *noisy) postBy(ctx context.Context, key string, body []byte, encoding string) error {
	header := http.Header{"X-Api-Key": {key}, "Content-Type": {"application/json"}}
	if encoding != "" {
		header.Set("Content-Encoding", encoding)
	}
	return n.ask(ctx, http.MethodPost, n.BaseURL+"/logs", header, body)
}

// get reads a path of the API.
func (n *noisy) get(ctx context.Context, path string) error {
	return n.ask(ctx, http.MethodGet, n.BaseURL+path, http.Header{"X-Api-Key": {n.Tenant.Key}}, nil)
}

// store posts bodies and waits until the log store has all of their
// entries, up to a page.
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
	return n.awaitStored(ctx)
}

// awaitStored waits until the newest page has an entry.
func (n *noisy) awaitStored(ctx context.Context) error {
	for {
		page, err := n.api.Logs(ctx, n.Tenant.Key, client.LogsQuery{Project: n.Tenant.Project, Limit: 1})
		if err != nil || len(page.Items) > 0 {
			return err
		}
		lifecycle.Pause(ctx, 100*time.Millisecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func batch(entries []string) []byte { return []byte(`{"logs":[` + strings.Join(entries, ",") + `]}`) }
