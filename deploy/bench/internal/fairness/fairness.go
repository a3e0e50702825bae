package fairness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/lifecycle"
)

// Config sets what to measure.
type Config struct {
	Weir        string   // the measured program
	Attacker    []string // the command that reads a job and attacks, see Attack
	Dir         string   // for all files; it must be empty, and is left as it is
	DatabaseURL string   // of a PostgreSQL; "" starts one
	Attacks     []string // names; none: all
	Each        time.Duration
	Idle        int // idle organizations
	Quiet       int // watched organizations
	Logger      *slog.Logger
}

// alone is the measurement without any attack, idle that with
// many idle organizations.
const (
	alone = "alone"
	idle  = "idle-tenants"
)

// A Result is what quiet organizations noticed of one attack.
type Result struct {
	Attack      string
	Description string
	Lawful      bool                    // the noisy tenant stays within every limit: it need not be refused
	Took        *[views]measure.Samples // of each view
	Refused     int64                   // posts of quiet organizations
	Failed      []error                 // their other failures
	Peak        int64                   // most bytes resident of the measured process meanwhile
	Cores       load                    // busy processors of each process
	Answers     *Outcome                // of the noisy tenant; nil without one
	Settled     time.Duration           // after the attack, until the views of a post were within their goal again
	Drained     time.Duration           // then, until the noisy tenant's own views showed what it had sent
}

// settleTimeout limits the wait for an attack's end: its rest would
// count toward the next.
const settleTimeout = time.Minute

// Run measures alone first, then beside each attack, then among idle
// tenants, and writes its steps to progress.
func Run(ctx context.Context, config Config, progress io.Writer) (results []Result, err error) {
	chosen, err := config.attacks()
	if err != nil {
		return nil, err
	}
	url, stopDatabase, err := measure.Database(ctx, config.DatabaseURL, config.Dir, config.Logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stopDatabase()) }()
	r := &run{Config: config, progress: progress, postmaster: measure.Postmaster(ctx, url)}
	variables := map[string]string{"WEIR_DATABASE_URL": url}
	err = r.install(ctx, "weir", variables, func() error { return r.attacked(ctx, chosen) })
	if err == nil && config.Idle > 0 {
		// The default limits of operators are too low to create so many
		// in minutes, and do not affect the results.
		variables["WEIR_CHANGES_PER_MINUTE"], variables["WEIR_READS_PER_MINUTE"] = "1000000", "1000000"
		err = r.install(ctx, "weir", variables, func() error { return r.amongIdle(ctx) })
	}
	return r.results, err
}

func (c Config) attacks() (chosen []attack, err error) {
	if len(c.Attacks) == 0 {
		return attacks(), nil
	}
	for _, name := range c.Attacks {
		found, err := attackNamed(name)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, found)
	}
	return chosen, nil
}

// A run measures one installation.
type run struct {
	Config

	progress   io.Writer
	postmaster int // 0: PostgreSQL runs elsewhere
	subject    *measure.Subject
	api        *client.Client
	quiet      *quiet
	results    []Result
}

func (r *run) say(format string, values ...any) { fmt.Fprintf(r.progress, "  "+format+"\n", values...) }

// install starts the installation, perhaps again, and measures.
func (r *run) install(ctx context.Context, name string, variables map[string]string, measured func() error) (err error) {
	if r.subject, err = measure.StartSubject(ctx, r.Weir, filepath.Join(r.Dir, name), variables); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.subject.Stop()) }()
	if r.api, err = r.subject.Client(16 * r.Quiet); err != nil {
		return err
	}
	defer r.api.Close()
	tenants, err := measure.NewTenants(ctx, r.api, r.subject.Env.OperatorToken, "quiet", r.Quiet)
	if err != nil {
		return err
	}
	if r.quiet, err = watch(r.subject, r.api, tenants); err != nil {
		return err
	}
	return measured()
}

// attacked measures alone, then beside each attack.
func (r *run) attacked(ctx context.Context, chosen []attack) error {
	r.say("%s for %s", alone, 2*r.Each)
	r.results = append(r.results, r.watch(ctx, Result{Attack: alone, Description: "nobody else"}, 2*r.Each, 0))
	for _, a := range chosen {
		r.say("beside %s: %s", a.name, a.description)
		result, of, err := r.beside(ctx, a)
		if err != nil {
			return err
		}
		result.Settled = r.settle(ctx, r.results[0])
		result.Drained = r.drain(ctx, of)
		r.results = append(r.results, result)
	}
	return ctx.Err()
}

// amongIdle measures among many idle organizations.
func (r *run) amongIdle(ctx context.Context) error {
	if err := r.makeIdle(ctx); err != nil {
		return err
	}
	result := Result{Attack: idle, Description: fmt.Sprintf("%d organizations that do nothing, in a restarted process", r.Idle)}
	r.results = append(r.results, r.watch(ctx, result, r.Each, 0))
	return ctx.Err()
}

// watch measures what the quiet organizations notice for d, while the
// process attacker, if not 0, attacks.
func (r *run) watch(ctx context.Context, result Result, d time.Duration, attacker int) Result {
	r.quiet.reset()
	stop, done := make(chan struct{}), make(chan struct{})
	peak, cores := measure.WatchPeak(r.subject.Pid()), r.watchLoad(attacker)
	go func() {
		defer close(done)
		r.quiet.run(ctx, stop)
	}()
	lifecycle.Pause(ctx, d)
	close(stop)
	<-done
	result.Peak, result.Cores = peak(), cores()
	result.Took, result.Refused, result.Failed = r.quiet.took, r.quiet.refused, r.quiet.failures
	return result
}

// beside measures while a separate organization attacks.
func (r *run) beside(ctx context.Context, a attack) (result Result, of measure.Tenant, err error) {
	attacker, of, err := r.startAttacker(ctx, a)
	if err != nil {
		return result, of, fmt.Errorf("cannot begin the attack %q: %w", a.name, err)
	}
	result = r.watch(ctx, Result{Attack: a.name, Description: a.description, Lawful: a.lawful}, r.Each, attacker.command.Process.Pid)
	result.Answers, err = attacker.stop()
	if err != nil {
		return result, of, fmt.Errorf("the attack %q: %w", a.name, err)
	}
	return result, of, nil
}

// settle waits until quiet organizations notice nothing of an attack any more.
func (r *run) settle(ctx context.Context, alone Result) time.Duration {
	begun := time.Now()
	for ctx.Err() == nil && time.Since(begun) < settleTimeout {
		r.quiet.reset()
		if err := r.quiet.probe(ctx, r.quiet.tenants[0]); err == nil && r.quiet.within(alone) {
			break
		}
		time.Sleep(probeEvery)
	}
	return time.Since(begun)
}
