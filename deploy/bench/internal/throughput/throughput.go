package throughput

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// Command measures with each broker in turn.
type Command struct {
	subject.Program  `embed:""`
	subject.Database `embed:""`

	Broker        string        `help:"Which brokers to measure with: embedded, kafka or both; sync: the embedded one with fsync and without." enum:"embedded,kafka,both,sync" default:"both"`
	Brokers       []string      `help:"Kafka to measure with, host:port. Without it an Apache Kafka is started here, where Java and Maven are." env:"WEIR_BENCH_BROKERS"`
	Organizations int           `help:"Organizations that the load is spread over; each may make 1,800 requests a minute." default:"24"`
	Senders       int           `help:"How many post at the same time." default:"16"`
	WarmUp        time.Duration `help:"How long to warm up." default:"5s"`
	Saturated     time.Duration `help:"How long to post as fast as answers come." default:"15s"`
	Paced         time.Duration `help:"How long to post at a fixed rate." default:"20s"`
	PacedRate     int           `help:"The fixed rate, entries a second; 0: half of what was accepted before." default:"25000"`
	Probes        int           `help:"Organizations whose views are looked at meanwhile." default:"3"`
	Profiles      string        `help:"Directory for CPU profiles of the measured process." type:"existingdir"`
}

// Validate is called by kong.
func (c *Command) Validate() error {
	if c.Organizations < 1 || c.Senders < 1 || c.Probes < 1 || c.PacedRate < 0 || min(c.WarmUp, c.Saturated, c.Paced) <= 0 {
		return errors.New("numbers and times must be more than 0")
	}
	if (c.Broker == "both" || c.Broker == "sync") && c.DatabaseURL != "" {
		return errors.New("each run needs a database of its own: with --database-url choose --broker=embedded or --broker=kafka")
	}
	return nil
}

// A broker is in the measured process, if sync is set, else given or started.
type broker struct {
	name string
	sync kafka.Sync
}

const (
	embedded = "embedded broker"
	started  = "Apache Kafka " + apache.Version
)

func (c *Command) brokers() []broker {
	outside := broker{name: started}
	if len(c.Brokers) > 0 {
		outside.name = "given Kafka"
	}
	return map[string][]broker{
		"embedded": {{embedded, kafka.SyncAlways}},
		"sync":     {{embedded, kafka.SyncAlways}, {embedded + ", no fsync", kafka.SyncOS}},
		"kafka":    {outside},
		"both":     {{embedded, kafka.SyncAlways}, outside},
	}[c.Broker]
}

// Run measures and prints a table.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) error {
	var results []*result
	for _, b := range c.brokers() {
		fmt.Fprintf(os.Stdout, "Measuring with the %s:\n", b.name)
		found := &result{broker: b.name}
		err := c.with(ctx, b, fmt.Sprintf("%d.pprof", len(results)), found, logger)
		if errors.Is(err, apache.ErrMissing) {
			say("skipped: %v; give the address of a Kafka with WEIR_BENCH_BROKERS", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("with the %s: %w", b.name, err)
		}
		results = append(results, found)
	}
	return write(results)
}

func say(format string, values ...any) { fmt.Fprintf(os.Stdout, "  "+format+"\n", values...) }

// with starts all that a run needs, measures, and stops it again.
func (c *Command) with(ctx context.Context, b broker, profile string, found *result, logger *slog.Logger) (err error) {
	dir, url, closeAll, err := c.Database.Open(ctx, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	variables, node := map[string]string{}, measure.Process{}
	switch {
	case b.sync != "":
		variables["WEIR_BROKER_SYNC"] = string(b.sync)
	case b.name == started:
		kafka, err := apache.Start(ctx, apache.Config{Dir: filepath.Join(dir, "apache-kafka")})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, kafka.Stop()) }()
		node.Pid, variables["WEIR_BROKERS"] = kafka.Pid(), kafka.Addr()
	default:
		variables["WEIR_BROKERS"] = strings.Join(c.Brokers, ",")
	}
	variables["WEIR_DATABASE_URL"] = url
	if c.Profiles != "" {
		variables["WEIR_CPU_PROFILE"] = filepath.Join(c.Profiles, profile)
	}
	weir, err := c.Program.Start(ctx, filepath.Join(dir, "weir"), variables)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, weir.Stop()) }()
	r := &run{Command: c, weir: weir, database: url, dir: dir, processes: []measure.Process{
		{Pid: weir.Pid()}, measure.Postmaster(ctx, url), node, {Pid: os.Getpid()},
	}}
	return r.measure(ctx, found)
}

// A run measures one installation.
type run struct {
	*Command

	weir      *subject.Subject
	database  string
	dir       string            // of all files
	processes []measure.Process // Weir, PostgreSQL, broker, load
	api       *client.Client
	tenants   []subject.Tenant
	watched   []*subject.Watched

	shown  [][subject.Views]atomic.Int64 // by tenant: what its views must show
	posted atomic.Int64                  // batches
}

func (r *run) measure(ctx context.Context, found *result) (err error) {
	if r.api, err = r.weir.Client(r.Senders + 4*r.Probes); err != nil {
		return err
	}
	defer r.api.Close()
	found.idle = measure.UsageOf(r.weir.Pid()).Memory
	if err := r.prepare(ctx); err != nil {
		return err
	}
	before, err := r.keptNow(ctx)
	if err != nil {
		return err
	}
	say("warming up for %s, then posting as fast as %d senders get answers for %s", r.WarmUp, r.Senders, r.Saturated)
	if _, err := r.post(ctx, measure.Load{Workers: r.Senders, For: r.WarmUp}); err != nil {
		return err
	}
	if found.full, err = r.post(ctx, measure.Load{Workers: r.Senders, For: r.Saturated}); err != nil {
		return err
	}
	say("waiting until balance, groups and read-back show all of it")
	if err := r.catchUp(ctx, found); err != nil {
		return err
	}
	after, err := r.keptNow(ctx)
	if err != nil {
		return err
	}
	found.kept = after.each(before, r.posted.Load()*subject.EntriesPerBatch)
	return r.pace(ctx, found)
}

// prepare creates the organizations.
func (r *run) prepare(ctx context.Context) (err error) {
	say("creating %d organizations", r.Organizations+r.Probes)
	if r.tenants, err = subject.NewTenants(ctx, r.api, r.weir.Env.OperatorToken, "load", r.Organizations); err != nil {
		return err
	}
	r.shown = make([][subject.Views]atomic.Int64, len(r.tenants))
	probed, err := subject.NewTenants(ctx, r.api, r.weir.Env.OperatorToken, "probe", r.Probes)
	for _, t := range probed {
		r.watched = append(r.watched, subject.Watch(r.api, t))
	}
	return err
}

// post puts load on the tenants in turn.
func (r *run) post(ctx context.Context, load measure.Load) (found phase, err error) {
	bodies := make([]*subject.Body, load.Workers)
	for i := range bodies {
		bodies[i] = subject.NewBody(subject.EntriesPerBatch)
	}
	var answers measure.Samples
	before := measure.CPU(r.processes...)
	took, err := load.Run(ctx, func(ctx context.Context, worker int, due time.Time) error {
		at, number := time.Now(), r.posted.Add(1)
		bodies[worker].Stamp(at, number*subject.EntriesPerBatch)
		tenant := int(number) % len(r.tenants)
		accepted, err := r.api.Post(ctx, r.tenants[tenant].Key, client.Batch{Body: bodies[worker].Text})
		if err != nil {
			return fmt.Errorf("a batch was not accepted: %w", err)
		}
		answers.Add(time.Since(due))
		shown := &r.shown[tenant]
		shown[subject.Balance].Add(accepted.BytesUsed)
		shown[subject.Group].Add(subject.EntriesPerBatch / subject.ErrorEvery)
		raise(&shown[subject.ReadBack], at.UnixMilli())
		return nil
	})
	batches := float64(max(1, answers.Count()))
	return phase{
		perSecond: batches * subject.EntriesPerBatch / took.Seconds(), answers: answers.Percentiles(50, 99, 100),
		cpu: measure.Since(before, batches, r.processes...), memory: measure.UsageOf(r.weir.Pid()),
	}, errors.Join(err, context.Cause(ctx))
}

// raise sets value to at least n.
func raise(value *atomic.Int64, n int64) {
	for old := value.Load(); old < n && !value.CompareAndSwap(old, n); old = value.Load() {
	}
}

// pace measures answers and views at a fixed rate.
func (r *run) pace(ctx context.Context, found *result) (err error) {
	entries := float64(r.PacedRate)
	if entries == 0 {
		entries = found.full.perSecond / 2
	}
	say("posting %.0f entries/s for %s, looking at the views of %d organizations", entries, r.Paced, r.Probes)
	var probes errgroup.Group
	over := make(chan struct{})
	for _, w := range r.watched {
		probes.Go(func() error { return probe(ctx, over, w, found.views[:]) })
	}
	found.paced, err = r.post(ctx, measure.Load{Workers: r.Senders, For: r.Paced, PerSecond: entries / subject.EntriesPerBatch})
	close(over)
	return errors.Join(err, probes.Wait())
}

// probe posts a batch and looks at its views, again and again.
func probe(ctx context.Context, over <-chan struct{}, w *subject.Watched, took []measure.Samples) error {
	const pause = 50 * time.Millisecond // after a batch that all views show
	for {
		select {
		case <-over:
			return nil
		case <-time.After(pause):
		}
		if err := w.Post(ctx); err != nil {
			return err
		}
		if err := w.Look(ctx, took); err != nil {
			return err
		}
	}
}

// catchUp waits until every view shows all that is accepted.
func (r *run) catchUp(ctx context.Context, found *result) error {
	const timeout, poll = 3 * time.Minute, 50 * time.Millisecond
	work, ctx := errgroup.WithContext(ctx)
	begun := time.Now()
	for view := range subject.Views {
		work.Go(func() error {
			return measure.Until(ctx, poll, func(ctx context.Context) (bool, error) {
				found.caughtUp[view] = time.Since(begun)
				lacks, err := r.lacks(ctx, view)
				if err == nil && (lacks < 0 || lacks > 0 && time.Since(begun) > timeout) {
					err = fmt.Errorf("%s lacks %d of what was accepted after %s", subject.ViewNames[view], lacks, time.Since(begun).Round(time.Second))
				}
				return lacks == 0, err
			})
		})
	}
	return work.Wait()
}

// lacks returns how many bytes, errors, or milliseconds of newest entries a
// view does not show yet.
func (r *run) lacks(ctx context.Context, view int) (missing int64, err error) {
	for i, t := range r.tenants {
		shown, err := t.Shown(ctx, r.api, view)
		if err != nil {
			return 0, err
		}
		missing += r.shown[i][view].Load() - shown
	}
	return missing, nil
}
