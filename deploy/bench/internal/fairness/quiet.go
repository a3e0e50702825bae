package fairness

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// How a quiet organization is watched: the intervals of batches,
// handshakes and sign-ins, and the timeout of a request. A sign-in costs
// CPU, so it must be rare not to be an attack itself.
const (
	probeEvery   = 500 * time.Millisecond
	shakeEvery   = 40 * time.Millisecond
	signInEvery  = time.Second
	probeTimeout = 30 * time.Second
)

// What a quiet tenant waits for. From balance to read-back they are the
// views of a watched tenant.
const (
	handshake = iota // a new TLS connection
	answer           // to a post
	balance
	group
	readBack
	search // for a word of its entries
	signIn // by a member known from the same device
	views  // how many there are
)

var viewNames = [views]string{"handshake", "answer", "balance", "group", "read-back", "search", "sign-in"}

// A quiet holds the quiet organizations and a member of the demo
// organization, watched from outside.
type quiet struct {
	api     *client.Client
	tenants []*subject.Watched
	browser *browser

	took     *[views]measure.Samples
	mu       sync.Mutex
	refused  int64
	failures []error
}

func newQuiet(weir *subject.Subject, api *client.Client, tenants []subject.Tenant) (*quiet, error) {
	q := &quiet{api: api}
	for _, t := range tenants {
		q.tenants = append(q.tenants, subject.Watch(api, t))
	}
	q.reset()
	var err error
	q.browser, err = newBrowser(job{
		BaseURL: weir.Env.BaseURL, CAFile: weir.Env.CAFile,
		ConsoleURL: weir.Env.ConsoleURL, ConsoleEmail: weir.Env.ConsoleEmail, ConsoleWord: weir.Env.ConsolePassword,
	})
	return q, err
}

// reset drops the measurements.
func (q *quiet) reset() { q.took, q.refused, q.failures = &[views]measure.Samples{}, 0, nil }

// run watches for d.
func (q *quiet) run(ctx context.Context, d time.Duration) {
	stop := time.Now().Add(d)
	var running sync.WaitGroup
	for i, w := range q.tenants {
		first := probeEvery * time.Duration(i) / time.Duration(len(q.tenants)) // side by side, not all at once
		running.Go(func() { q.every(ctx, stop, first, probeEvery, func() error { return q.probe(ctx, w) }) })
	}
	running.Go(func() {
		q.every(ctx, stop, 0, shakeEvery, func() error { return q.took[handshake].Time(func() error { return q.browser.shake(ctx) }) })
	})
	running.Go(func() {
		q.every(ctx, stop, 0, signInEvery, func() error { return q.took[signIn].Time(func() error { return q.browser.signIn(ctx) }) })
	})
	running.Wait()
}

// every repeats once from the time first on, at an interval or as
// soon as it has ended: slow operations must not be measured less
// often. It keeps failures.
func (q *quiet) every(ctx context.Context, stop time.Time, first, interval time.Duration, once func() error) {
	due := time.NewTimer(first)
	defer due.Stop()
	over := time.NewTimer(time.Until(stop))
	defer over.Stop()
	for {
		select {
		case <-over.C:
			return
		case <-ctx.Done():
			return
		case <-due.C:
		}
		due.Reset(interval)
		if err := once(); err != nil && ctx.Err() == nil {
			q.mu.Lock()
			q.failures = append(q.failures, err)
			q.mu.Unlock()
		}
	}
}

// probe posts a batch, looks at each view until it shows that, and
// searches for a word.
func (q *quiet) probe(ctx context.Context, w *subject.Watched) error {
	if err := q.took[answer].Time(func() error { return w.Post(ctx) }); err != nil {
		q.mu.Lock()
		q.refused++
		q.mu.Unlock()
		return fmt.Errorf("a post was refused: %w", err)
	}
	if err := w.Look(ctx, q.took[balance:search]); err != nil {
		return err
	}
	return q.took[search].Time(func() error {
		page, err := q.api.Logs(ctx, w.Key, client.LogsQuery{Project: w.Project, Words: "upstream pool answered", Limit: 20})
		if err == nil && len(page.Items) == 0 {
			err = errors.New("it finds nothing")
		}
		if err != nil {
			return fmt.Errorf("a search: %w", err)
		}
		return nil
	})
}

// within reports whether the samples since the last reset are within the goals.
func (q *quiet) within(alone result) bool {
	for view := range q.took {
		if q.took[view].Percentiles(100)[0] > goal(alone.took[view].Percentiles(99)[0]) {
			return false
		}
	}
	return len(q.failures) == 0
}

// A browser is a person's, and may have a session.
type browser struct {
	*http.Client

	tls  *tls.Config
	host string // host:port of the installation
	job  job
}

func newBrowser(of job) (*browser, error) {
	base, err := url.Parse(of.BaseURL)
	if err != nil {
		return nil, fmt.Errorf("cannot read the address %q: %w", of.BaseURL, err)
	}
	pool, err := client.Authorities(of.CAFile)
	if err != nil {
		return nil, err
	}
	trusting := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: base.Hostname()}
	jar, err := cookiejar.New(nil)
	return &browser{
		Client: &http.Client{
			Jar: jar, Timeout: probeTimeout, Transport: &http.Transport{TLSClientConfig: trusting, MaxIdleConnsPerHost: 64}, CheckRedirect: stay,
		},
		tls: trusting, host: base.Host, job: of,
	}, err
}

func stay(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// dial opens a TLS connection from a local address; nil: any.
func (b *browser) dial(ctx context.Context, from net.IP, protocols ...string) (net.Conn, error) {
	dialer, config := &net.Dialer{Timeout: probeTimeout}, b.tls.Clone()
	if from != nil {
		dialer.LocalAddr = &net.TCPAddr{IP: from}
	}
	config.NextProtos = protocols
	return (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", b.host)
}

// shake opens a TLS connection, a newcomer's first wait.
func (b *browser) shake(ctx context.Context) error {
	conn, err := b.dial(ctx, nil)
	if err != nil {
		return err
	}
	return conn.Close()
}

// signIn signs the member in.
func (b *browser) signIn(ctx context.Context) error {
	r, err := signInAs(b.job, b.job.ConsoleEmail, b.job.ConsoleWord).request(ctx)
	if err != nil {
		return err
	}
	answer, err := b.Do(r)
	if err != nil {
		return err
	}
	if err := answer.Body.Close(); err != nil || answer.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("cannot sign in: answered %d: %w", answer.StatusCode, err)
	}
	return nil
}
