package fairness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/measure"
)

// Command measures beside each attack.
type Command struct {
	Attacks []string      `arg:"" optional:"" name:"attack" help:"Attacks to measure; all of them where none is named: ${attacks}."`
	Each    time.Duration `help:"How long to watch beside each attack." default:"17s"`
}

// quiet is how many organizations are watched, each posting twice a second.
const quiet = 14

// Help is called by kong.
func (Command) Help() string {
	return `Quiet organizations post a small batch now and then and look at their balance, error groups and entries. Beside them one
organization after the other does what a bad tenant does: a flood, endless bodies, huge answers left unread, silent sockets and
others. The table says what the quiet ones noticed, how much memory Weir took, and what the noisy one was answered. A figure that
misses its goal has an exclamation mark.`
}

// Validate is called by kong.
func (c *Command) Validate() error {
	if c.Each <= 0 {
		return errors.New("--each must be more than 0")
	}
	_, err := chosen(c.Attacks)
	return err
}

// Run measures and prints a table.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) error {
	return subject.In(ctx, logger, func(dir, database string) error {
		r := &run{Command: c, dir: dir, postmaster: measure.Postmaster(ctx, database)}
		subject.Say("Measuring what quiet organizations notice:")
		err := subject.Run(ctx, dir, map[string]string{"WEIR_DATABASE_URL": database}, func(w *subject.Weir) error { return r.measure(ctx, w) })
		if len(r.results) > 0 {
			_, failed := write(os.Stdout, c, r.results)
			err = errors.Join(err, failed)
		}
		return err
	})
}

// alone is the measurement beside which nobody attacks.
const alone = "alone"

// Limits of the wait for an attack's end, whose rest would count toward the
// next, and of a quiet organization's request.
const (
	settleTimeout = time.Minute
	probeTimeout  = 30 * time.Second
)

// A run measures one installation: quiet organizations and a member of the
// demo organization are watched from outside.
type run struct {
	*Command

	dir        string
	postmaster measure.Process
	weir       *subject.Weir
	quiet      []*subject.Watched
	browser    *subject.Browser
	results    []*result
}

// measure measures alone, then beside each attack.
func (r *run) measure(ctx context.Context, w *subject.Weir) (err error) {
	r.weir = w
	if r.quiet, err = w.Watch(ctx, "quiet", quiet); err != nil {
		return err
	}
	if r.browser, err = subject.NewBrowser(w.Env); err != nil {
		return err
	}
	r.browser.Timeout = probeTimeout
	subject.Say("  %s for %s", alone, 2*r.Each)
	r.results = append(r.results, r.watch(ctx, attack{Name: alone, Does: "nobody else", Lawful: true}, 2*r.Each, 0))
	attacks, err := chosen(r.Attacks)
	if err != nil {
		return err
	}
	for _, a := range attacks {
		subject.Say("  beside %s: %s", a.Name, a.Does)
		if err := r.beside(ctx, a); err != nil {
			return fmt.Errorf("the attack %q: %w", a.Name, err)
		}
	}
	return ctx.Err()
}

// beside measures while a separate organization attacks from a process of its
// own, and then waits until nothing is left of that.
func (r *run) beside(ctx context.Context, a attack) error {
	job, err := r.job(ctx, a)
	if err != nil {
		return err
	}
	attacker, _, err := measure.Again(ctx, r.dir, "attack", job)
	if err != nil {
		return err
	}
	found := r.watch(ctx, a, r.Each, attacker.Pid)
	said, err := attacker.Stop()
	if err != nil {
		return err
	}
	found.answers = &outcome{}
	if err := json.NewDecoder(bytes.NewReader(said)).Decode(found.answers); err != nil {
		return err
	}
	begun := time.Now()
	for ctx.Err() == nil && time.Since(begun) < settleTimeout {
		rest := &result{}
		if err := r.probe(ctx, rest, r.quiet[0]); err == nil && rest.within(r.results[0]) {
			break
		}
		lifecycle.Pause(ctx, probeEvery)
	}
	found.settled = time.Since(begun)
	found.drained = r.drain(ctx, job.Tenant)
	r.results = append(r.results, found)
	return nil
}

// drain posts a batch of a noisy tenant and waits until its own log and
// groups show it, and so all deferred records of the attack: they must
// not disturb the next measurement.
func (r *run) drain(ctx context.Context, of subject.Tenant) time.Duration {
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	body := subject.NewBody(subject.WatchedBatch, 0)
	at := begun.Truncate(time.Millisecond) // as timestamps are
	until := func(done func() bool) {
		_ = measure.Until(ctx, 200*time.Millisecond, func(context.Context) (bool, error) { return done(), nil }) // its end is in the table
	}
	until(func() bool {
		_, err := r.weir.Post(ctx, of.Key, client.Batch{Body: body.Text})
		return err == nil
	})
	until(func() bool {
		page, err := r.weir.Logs(ctx, of.Key, client.LogsQuery{Project: of.Project, From: at, To: at.Add(time.Second), Limit: 1})
		return err == nil && len(page.Items) > 0
	})
	until(func() bool {
		answer, err := r.weir.Call(ctx, client.Request{
			Method: http.MethodGet, Path: "/projects/" + of.Project + "/error-groups?limit=1", Header: map[string]string{"X-Api-Key": of.Key},
		})
		var newest client.List[client.ErrorGroup]
		return err == nil && json.Unmarshal(answer.Body, &newest) == nil && len(newest.Items) > 0 && !newest.Items[0].LastSeen.Before(at)
	})
	return time.Since(begun)
}

// How a quiet organization is watched: the intervals of batches, handshakes
// and sign-ins. A sign-in costs CPU, so it must be rare not to be an attack
// itself.
const (
	probeEvery  = 500 * time.Millisecond
	shakeEvery  = 40 * time.Millisecond
	signInEvery = time.Second
)

// watch measures what the quiet organizations notice for d, while the
// process attacker, if not 0, attacks.
func (r *run) watch(ctx context.Context, a attack, d time.Duration, attacker int) *result {
	found := &result{attack: a}
	cpu := measure.CPU(measure.Process{Pid: r.weir.Pid}, r.postmaster, measure.Process{Pid: attacker}, measure.Process{Pid: os.Getpid()})
	peak, begun := measure.WatchPeak(r.weir.Pid), time.Now()
	end := begun.Add(d)
	var running sync.WaitGroup
	// repeat begins again at an interval, or as soon as it has ended: slow
	// operations must not be measured less often.
	repeat := func(first, interval time.Duration, once func() error) {
		running.Go(func() {
			var due time.Time
			for lifecycle.Pause(ctx, first); ctx.Err() == nil && time.Now().Before(end); lifecycle.Pause(ctx, time.Until(due)) {
				due = time.Now().Add(interval)
				if err := once(); err != nil && ctx.Err() == nil {
					found.fail(err)
				}
				if due.After(end) {
					due = end
				}
			}
		})
	}
	for i, w := range r.quiet { // side by side, not all at once
		repeat(probeEvery*time.Duration(i)/time.Duration(len(r.quiet)), probeEvery, func() error { return r.probe(ctx, found, w) })
	}
	repeat(0, shakeEvery, func() error { return found.took[handshake].Time(func() error { return r.shake(ctx) }) })
	repeat(0, signInEvery, func() error { return found.took[signIn].Time(func() error { return r.browser.SignInMember(ctx) }) })
	running.Wait()
	found.peak, found.cores = peak(), cpu(time.Since(begun).Seconds())
	return found
}

// probe posts a batch, looks at each view until it shows that, and
// searches for a word.
func (r *run) probe(ctx context.Context, found *result, w *subject.Watched) error {
	if err := found.took[answer].Time(func() error { return w.Post(ctx) }); err != nil {
		return fmt.Errorf("%w: %w", errRefused, err)
	}
	if err := w.Look(ctx, found.took[balance:search]); err != nil {
		return err
	}
	return found.took[search].Time(func() error {
		page, err := r.weir.Logs(ctx, w.Key, client.LogsQuery{Project: w.Project, Query: "GET products OR exists:error", Limit: 20})
		if err == nil && len(page.Items) == 0 {
			err = errors.New("it finds nothing")
		}
		if err != nil {
			return fmt.Errorf("a search: %w", err)
		}
		return nil
	})
}

// shake opens a TLS connection, a newcomer's first wait.
func (r *run) shake(ctx context.Context) error {
	conn, err := r.browser.Dial(ctx, nil)
	if err != nil {
		return err
	}
	return conn.Close()
}
