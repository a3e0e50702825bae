package fairness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// Command measures beside each attack.
type Command struct {
	subject.Program  `embed:""`
	subject.Database `embed:""`

	Attacks []string      `arg:"" optional:"" name:"attack" help:"Attacks to measure; all of them where none is named: ${attacks}."`
	Each    time.Duration `help:"How long to watch beside each attack." default:"17s"`
	Idle    int           `help:"At the end, how many organizations that do nothing are created." default:"10000"`
	Quiet   int           `help:"Organizations that are watched, each posting twice a second." default:"14"`
	Attack  bool          `help:"Read a job from standard input and attack: how this command starts its own attackers." hidden:""`
}

// Help is called by kong.
func (Command) Help() string {
	return `Quiet organizations post a small batch now and then and look at their balance, error groups and entries. Beside them one
organization after the other does what a bad tenant does: a flood, endless bodies, huge answers left unread, silent sockets and
others. The table says what the quiet ones noticed, how much memory Weir took, and what the noisy one was answered. A figure that
misses its goal has an exclamation mark.`
}

// Validate is called by kong.
func (c *Command) Validate() error {
	if c.Each <= 0 || c.Idle < 0 || c.Quiet < 1 {
		return errors.New("--each and --quiet must be more than 0, --idle at least 0")
	}
	_, err := c.chosen()
	return err
}

// Run measures and prints a table.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) (err error) {
	if c.Attack {
		return attackBy(ctx, os.Stdin, os.Stdout)
	}
	dir, url, closeAll, err := c.Database.Open(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	r := &run{Command: c, dir: dir, url: url, postmaster: measure.Postmaster(ctx, url)}
	say("Measuring what quiet organizations notice:")
	err = r.install(ctx, nil, r.attacked)
	if err == nil && c.Idle > 0 {
		// The default limits of operators are too low to create so many in
		// minutes, and do not affect the results.
		err = r.install(ctx, map[string]string{"WEIR_CHANGES_PER_MINUTE": "1000000", "WEIR_READS_PER_MINUTE": "1000000"}, r.amongIdle)
	}
	if len(r.results) > 0 {
		_, failed := write(os.Stdout, c, r.results)
		err = errors.Join(err, failed)
	}
	return err
}

func say(format string, values ...any) { fmt.Fprintf(os.Stdout, format+"\n", values...) }

// The measurements beside which nobody attacks.
const (
	alone = "alone"
	idle  = "idle-tenants"
)

// A result is what quiet organizations noticed of one attack.
type result struct {
	attack  attack
	took    *[views]measure.Samples
	refused int64           // posts of quiet organizations
	failed  []error         // of them
	peak    int64           // most bytes resident of the measured process meanwhile
	cores   []time.Duration // each process's CPU time of a second: an attack costs its own process some, and they share a machine
	answers *outcome        // of the noisy tenant; nil without one
	settled time.Duration   // after the attack, until the views of a post were within their goal again
	drained time.Duration   // then, until the noisy tenant's own views showed what it had sent
}

// settleTimeout limits the wait for an attack's end: its rest would count
// toward the next.
const settleTimeout = time.Minute

// A run measures one installation.
type run struct {
	*Command

	dir        string
	url        string
	postmaster measure.Process
	weir       *subject.Subject
	api        *client.Client
	quiet      *quiet
	results    []result
}

// install starts the installation, perhaps again, and measures.
func (r *run) install(ctx context.Context, variables map[string]string, measured func(context.Context) error) (err error) {
	all := map[string]string{"WEIR_DATABASE_URL": r.url}
	for name, value := range variables {
		all[name] = value
	}
	if r.weir, err = r.Program.Start(ctx, filepath.Join(r.dir, "weir"), all); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.weir.Stop()) }()
	if r.api, err = r.weir.Client(16 * r.Quiet); err != nil {
		return err
	}
	defer r.api.Close()
	tenants, err := subject.NewTenants(ctx, r.api, r.weir.Env.OperatorToken, "quiet", r.Quiet)
	if err != nil {
		return err
	}
	if r.quiet, err = newQuiet(r.weir, r.api, tenants); err != nil {
		return err
	}
	return measured(ctx)
}

// attacked measures alone, then beside each attack.
func (r *run) attacked(ctx context.Context) error {
	say("  %s for %s", alone, 2*r.Each)
	r.results = append(r.results, r.watch(ctx, attack{name: alone, description: "nobody else", lawful: true}, 2*r.Each, 0))
	chosen, err := r.chosen()
	if err != nil {
		return err
	}
	for _, a := range chosen {
		say("  beside %s: %s", a.name, a.description)
		if err := r.beside(ctx, a); err != nil {
			return fmt.Errorf("the attack %q: %w", a.name, err)
		}
	}
	return ctx.Err()
}

// amongIdle measures among many idle organizations.
func (r *run) amongIdle(ctx context.Context) error {
	say("  creating %d organizations that do nothing", r.Idle)
	const makers = 8
	var made atomic.Int64
	making, done := context.WithCancel(ctx)
	defer done()
	_, err := measure.Load{Workers: makers}.Run(making, func(context.Context, int, time.Time) error {
		number := int(made.Add(1))
		if number > r.Idle {
			done()
			return nil
		}
		if number%1000 == 0 {
			say("    %d of %d", number, r.Idle)
		}
		return subject.NewIdle(ctx, r.api, r.weir.Env.OperatorToken, fmt.Sprintf("idle %d", number))
	})
	if err != nil {
		return err
	}
	nothing := attack{name: idle, description: fmt.Sprintf("%d organizations that do nothing, in a restarted process", r.Idle), lawful: true}
	r.results = append(r.results, r.watch(ctx, nothing, r.Each, 0))
	return ctx.Err()
}

// watch measures what the quiet organizations notice for d, while the
// process attacker, if not 0, attacks.
func (r *run) watch(ctx context.Context, a attack, d time.Duration, attacker int) result {
	r.quiet.reset()
	processes := []measure.Process{{Pid: r.weir.Pid()}, r.postmaster, {Pid: attacker}, {Pid: os.Getpid()}}
	peak, begun, before := measure.WatchPeak(r.weir.Pid()), time.Now(), measure.CPU(processes...)
	r.quiet.run(ctx, d)
	return result{
		attack: a, peak: peak(), cores: measure.Since(before, time.Since(begun).Seconds(), processes...),
		took: r.quiet.took, refused: r.quiet.refused, failed: r.quiet.failures,
	}
}

// beside measures while a separate organization attacks, and then waits
// until nothing is left of that.
func (r *run) beside(ctx context.Context, a attack) error {
	job, err := r.job(ctx, a)
	if err != nil {
		return err
	}
	attacker, err := launch(ctx, job)
	if err != nil {
		return err
	}
	found := r.watch(ctx, a, r.Each, attacker.command.Process.Pid)
	if found.answers, err = attacker.stop(); err != nil {
		return err
	}
	begun := time.Now()
	for ctx.Err() == nil && time.Since(begun) < settleTimeout {
		r.quiet.reset()
		if err := r.quiet.probe(ctx, r.quiet.tenants[0]); err == nil && r.quiet.within(r.results[0]) {
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
	body := subject.NewBody(subject.ErrorEvery)
	body.Stamp(begun, 0)
	at := begun.Truncate(time.Millisecond) // as timestamps are
	for _, done := range []func() bool{
		func() bool {
			_, err := r.api.Post(ctx, of.Key, client.Batch{Body: body.Text})
			return err == nil
		},
		func() bool {
			page, err := r.api.Logs(ctx, of.Key, client.LogsQuery{Project: of.Project, From: at, To: at.Add(time.Second), Limit: 1})
			return err == nil && len(page.Items) > 0
		},
		func() bool {
			answer, err := r.api.Call(ctx, client.Request{
				Method: http.MethodGet, Path: "/projects/" + of.Project + "/error-groups?limit=1", Header: map[string]string{"X-Api-Key": of.Key},
			})
			var newest client.List[client.ErrorGroup]
			return err == nil && json.Unmarshal(answer.Body, &newest) == nil && len(newest.Items) > 0 && !newest.Items[0].LastSeen.Before(at)
		},
	} {
		for ctx.Err() == nil && !done() {
			lifecycle.Pause(ctx, 200*time.Millisecond)
		}
	}
	return time.Since(begun)
}
