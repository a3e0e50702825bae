package fairness

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
)

// How a quiet organization is watched: the intervals of polling,
// batches, handshakes and sign-ins, and the timeout of a view. A
// sign-in costs CPU, so it must be rare not to be an attack itself.
const (
	probePoll    = 20 * time.Millisecond
	probeEvery   = 500 * time.Millisecond
	shakeEvery   = 40 * time.Millisecond
	signInEvery  = time.Second
	probeTimeout = 30 * time.Second
)

// A View is something that a quiet tenant waits for.
type View int

// The views.
const (
	Handshake View = iota // a new TLS connection
	Answer                // to a post
	Balance               // shows the post
	Group                 // counts its error
	ReadBack              // has its entries
	Search                // for a word of them
	SignIn                // by a member known from the same device
	views                 // how many there are
)

// String names the view.
func (v View) String() string {
	return [...]string{"handshake", "answer", "balance", "group", "read-back", "search", "sign-in"}[v]
}

// A quiet holds the quiet organizations and a member of the demo
// organization, watched from outside.
type quiet struct {
	api     *client.Client
	tenants []*watched
	host    string
	tls     *tls.Config
	console string
	member  [2]string // e-mail and password
	browser *http.Client

	took     *[views]measure.Samples
	mu       sync.Mutex
	refused  int64
	failures []error
}

// watched is a quiet organization and its accepted entries.
type watched struct {
	measure.Tenant
	body          *measure.Body
	bytes, errors int64
	serial        int64
}

func watch(subject *measure.Subject, api *client.Client, tenants []measure.Tenant) (*quiet, error) {
	base, err := url.Parse(subject.Env.BaseURL)
	if err != nil {
		return nil, err
	}
	q := &quiet{
		api: api, host: base.Host, console: subject.Env.ConsoleURL, member: [2]string{subject.Env.ConsoleEmail, subject.Env.ConsolePassword},
		took: &[views]measure.Samples{},
	}
	if q.tls, err = trusting(subject.Env.CAFile, base.Hostname()); err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	q.browser = &http.Client{Jar: jar, Timeout: probeTimeout, Transport: &http.Transport{TLSClientConfig: q.tls},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, tenant := range tenants {
		q.tenants = append(q.tenants, &watched{Tenant: tenant, body: measure.NewBody(measure.ErrorEvery)}) // with one error
	}
	return q, nil
}

// reset drops the measurements.
func (q *quiet) reset() {
	q.took, q.refused, q.failures = &[views]measure.Samples{}, 0, nil
}

// run watches until stop is closed.
func (q *quiet) run(ctx context.Context, stop <-chan struct{}) {
	var running sync.WaitGroup
	for i, w := range q.tenants {
		first := probeEvery * time.Duration(i) / time.Duration(len(q.tenants)) // side by side, not all at once
		running.Go(func() { q.every(ctx, stop, first, probeEvery, func() error { return q.probe(ctx, w) }) })
	}
	running.Go(func() { q.every(ctx, stop, 0, shakeEvery, func() error { return q.shake(ctx) }) })
	running.Go(func() { q.every(ctx, stop, 0, signInEvery, func() error { return q.enter(ctx) }) })
	running.Wait()
}

// every repeats once from the time first on, at an interval or as
// soon as it has ended: slow operations must not be measured less
// often. It keeps failures.
func (q *quiet) every(ctx context.Context, stop <-chan struct{}, first, interval time.Duration, once func() error) {
	due := time.NewTimer(first)
	defer due.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-due.C:
		}
		due.Reset(interval)
		if err := once(); err != nil && ctx.Err() == nil {
			q.failed(err)
		}
	}
}

func (q *quiet) failed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failures = append(q.failures, err)
}

func (q *quiet) shake(ctx context.Context) error {
	took, err := handshake(ctx, q.host, q.tls)
	if err == nil {
		q.took[Handshake].Add(took)
	}
	return err
}

func (q *quiet) enter(ctx context.Context) error {
	begun := time.Now()
	err := signIn(ctx, q.browser, q.console, q.member[0], q.member[1])
	if err == nil {
		q.took[SignIn].Add(time.Since(begun))
	}
	return err
}

// probe posts a batch and polls each view, separately, until it
// shows the batch.
func (q *quiet) probe(ctx context.Context, w *watched) error {
	begun := time.Now()
	w.serial += measure.ErrorEvery
	w.body.Stamp(begun, w.serial)
	accepted, err := q.api.Post(ctx, w.Key, client.Batch{Body: w.body.Text})
	if err != nil {
		q.mu.Lock()
		q.refused++
		q.mu.Unlock()
		return fmt.Errorf("a post was refused: %w", err)
	}
	q.took[Answer].Add(time.Since(begun))
	w.bytes, w.errors = w.bytes+accepted.BytesUsed, w.errors+1
	var looking sync.WaitGroup
	for view, shows := range q.shows(ctx, w, begun.UnixMilli()) {
		looking.Go(func() {
			if err := q.look(view, shows); err != nil {
				q.failed(fmt.Errorf("%s: %w", view, err))
			}
		})
	}
	looking.Wait()
	return q.search(ctx, w)
}

// shows returns, for each view, whether it shows all accepted entries.
func (q *quiet) shows(ctx context.Context, w *watched, newest int64) map[View]func() (bool, error) {
	return map[View]func() (bool, error){
		Balance: func() (bool, error) {
			balance, err := q.api.Balance(ctx, w.Billing, w.Organization)
			return balance.Accepted() >= w.bytes, err
		},
		Group: func() (bool, error) {
			groups, err := q.api.ErrorGroups(ctx, w.Key, w.Project)
			var count int64
			for _, group := range groups {
				count += group.Count
			}
			return count >= w.errors, err
		},
		ReadBack: func() (bool, error) {
			page, err := q.api.Logs(ctx, w.Key, client.LogsQuery{Project: w.Project, Limit: 1})
			return len(page.Items) > 0 && measure.StampOf(string(page.Items[0].Entry)) >= newest, err
		},
	}
}

// look repeats shows until it is true and records how long that took.
// No view shows a batch at once, so it waits before the first look.
func (q *quiet) look(view View, shows func() (bool, error)) error {
	for begun := time.Now(); ; {
		time.Sleep(probePoll)
		shown, err := shows()
		switch {
		case err != nil:
			return err
		case shown:
			q.took[view].Add(time.Since(begun))
			return nil
		case time.Since(begun) > probeTimeout:
			q.took[view].Add(probeTimeout)
			return fmt.Errorf("it does not show a batch %s after its answer", probeTimeout)
		}
	}
}

// search searches for sent words.
func (q *quiet) search(ctx context.Context, w *watched) error {
	begun := time.Now()
	page, err := q.api.Logs(ctx, w.Key, client.LogsQuery{Project: w.Project, Words: "upstream pool answered", Limit: 20})
	if err != nil {
		return fmt.Errorf("a search was refused: %w", err)
	}
	if len(page.Items) == 0 {
		return fmt.Errorf("a search finds nothing")
	}
	q.took[Search].Add(time.Since(begun))
	return nil
}

// within reports whether the samples since the last reset are within the goals.
func (q *quiet) within(alone Result) bool {
	for view := range q.took {
		if q.took[view].Percentiles(100)[0] > goal(alone.Took[view].Percentiles(99)[0]) {
			return false
		}
	}
	return len(q.failures) == 0
}
