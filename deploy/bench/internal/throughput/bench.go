package throughput

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/measure"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/embedded/kafka"
)

// Config sets what to measure.
type Config struct {
	Weir          string   // the measured program
	Dir           string   // for all files; it must be empty, and is left as it is
	DatabaseURL   string   // of a PostgreSQL; "" starts one
	Brokers       []string // of a Kafka beside the embedded broker; none starts one if possible
	Embedded      bool     // measure with the embedded broker
	Unsynced      bool     // measure with the embedded broker without fsync
	Kafka         bool     // measure with Apache Kafka
	Organizations int      // that share the load
	Senders       int      // concurrent senders
	WarmUp        time.Duration
	Saturated     time.Duration // duration of posting as fast as answers come
	Paced         time.Duration // duration of posting at PacedRate
	PacedRate     int           // entries a second; 0: half of those accepted before
	Probes        int           // organizations whose views are read during the paced load
	Profiles      string        // directory for CPU profiles of the measured process; "" takes none
	Logger        *slog.Logger
}

// A Result is what was measured with one broker.
type Result struct {
	Broker  string
	Skipped error // why nothing was measured

	Full    Phase
	CatchUp lag
	Kept    Kept // per entry, after views had caught up
	Paced   Phase
	Views   Views
	Probed  int
	Idle    int64 // bytes resident before any load
}

// Views is until each view showed a batch: p50, p99.
type Views struct{ Balance, Groups, Entries [2]time.Duration }

// A Phase is one stretch of load.
type Phase struct {
	EntriesPerSecond float64
	Batches          int64
	Answer           [3]time.Duration // p50, p99, longest
	CPU              CPU
	Memory, Peak     int64 // resident bytes of the measured process at the end, and at most so far
}

// CPU is each process's cost of one batch; 0: unknown.
type CPU struct{ Weir, Postgres, Broker, Load time.Duration }

// Run measures with each broker in turn, writes its steps to progress,
// and returns the results.
func Run(ctx context.Context, config Config, progress io.Writer) ([]Result, error) {
	var brokers []broker
	if config.Embedded {
		brokers = append(brokers, embedded)
	}
	if config.Unsynced {
		brokers = append(brokers, unsynced)
	}
	if config.Kafka && len(config.Brokers) > 0 {
		brokers = append(brokers, given(config.Brokers))
	} else if config.Kafka {
		brokers = append(brokers, local)
	}
	var results []Result
	for number, b := range brokers {
		fmt.Fprintf(progress, "Measuring with the %s:\n", b.name)
		result, err := measureWith(ctx, config, b, filepath.Join(config.Dir, fmt.Sprint(number)), progress)
		if errors.Is(err, errSkipped) {
			fmt.Fprintf(progress, "  %v\n", err)
			result.Skipped, err = err, nil
		}
		if err != nil {
			return results, fmt.Errorf("with the %s: %w", b.name, err)
		}
		result.Broker = b.name
		results = append(results, result)
	}
	return results, nil
}

// measureWith starts all that a run needs, measures, and stops it again.
func measureWith(ctx context.Context, config Config, b broker, dir string, progress io.Writer) (result Result, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return result, err
	}
	running, err := b.start(ctx, dir)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, running.stop()) }()
	url, stopDatabase, err := measure.Database(ctx, config.DatabaseURL, dir, config.Logger)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, stopDatabase()) }()
	variables := map[string]string{"WEIR_DATABASE_URL": url, "WEIR_BROKERS": running.brokers, "WEIR_BROKER_SYNC": string(cmp.Or(running.sync, kafka.SyncAlways))}
	if config.Profiles != "" {
		variables["WEIR_CPU_PROFILE"] = filepath.Join(config.Profiles, filepath.Base(dir)+".pprof")
	}
	subject, err := measure.StartSubject(ctx, config.Weir, filepath.Join(dir, "weir"), variables)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, subject.Stop()) }()
	r := &run{
		config: config, progress: progress, dir: dir, database: url, subject: subject, postmaster: measure.Postmaster(ctx, url), broker: running.pid,
	}
	return r.measure(ctx)
}

// A run measures one installation.
type run struct {
	config     Config
	progress   io.Writer
	dir        string // of all files
	database   string
	subject    *measure.Subject
	postmaster int
	broker     int
	api        *client.Client
	load       *load
	probes     *probes
}

func (r *run) measure(ctx context.Context) (result Result, err error) {
	if r.api, err = r.subject.Client(r.config.Senders + 4*r.config.Probes); err != nil {
		return result, err
	}
	defer r.api.Close()
	result.Idle = measure.UsageOf(r.subject.Pid()).Memory
	if err := r.prepare(ctx); err != nil {
		return result, err
	}
	before, err := r.kept(ctx)
	if err != nil {
		return result, err
	}
	if result.Full, err = r.saturate(ctx); err != nil {
		return result, err
	}
	r.say("waiting until balance, groups and read-back show all of it")
	if result.CatchUp, err = r.load.catchUp(ctx); err != nil {
		return result, err
	}
	after, err := r.kept(ctx)
	if err != nil {
		return result, err
	}
	result.Kept = after.since(before, r.load.posted.Load())
	if result.Paced, err = r.pace(ctx, result.Full.EntriesPerSecond); err != nil {
		return result, err
	}
	result.Views, result.Probed = r.probes.views(), r.probes.balance.Count()
	return result, nil
}

func (r *run) say(format string, values ...any) {
	fmt.Fprintf(r.progress, "  "+format+"\n", values...)
}

// prepare creates the organizations.
func (r *run) prepare(ctx context.Context) error {
	r.say("creating %d organizations", r.config.Organizations+r.config.Probes)
	tenants, err := measure.NewTenants(ctx, r.api, r.subject.Env.OperatorToken, "load", r.config.Organizations)
	if err != nil {
		return err
	}
	probed, err := measure.NewTenants(ctx, r.api, r.subject.Env.OperatorToken, "probe", r.config.Probes)
	r.load, r.probes = newLoad(r.api, tenants), &probes{api: r.api, tenants: probed}
	return err
}

// saturate measures how much is accepted.
func (r *run) saturate(ctx context.Context) (Phase, error) {
	r.say("warming up for %s", r.config.WarmUp)
	r.load.saturate(ctx, r.config.Senders, r.config.WarmUp)
	r.load.reset()
	r.say("posting as fast as %d senders get answers for %s", r.config.Senders, r.config.Saturated)
	before := r.cpu()
	took := r.load.saturate(ctx, r.config.Senders, r.config.Saturated)
	return r.phase(ctx, took, before)
}

// pace measures answers and views at a fixed rate.
func (r *run) pace(ctx context.Context, accepted float64) (Phase, error) {
	entries := float64(r.config.PacedRate)
	if entries == 0 {
		entries = accepted / 2
	}
	r.load.reset()
	r.say("posting %.0f entries/s for %s, looking at the views of %d organizations", entries, r.config.Paced, r.config.Probes)
	stop, probed := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(probed)
		r.probes.run(ctx, stop)
	}()
	before := r.cpu()
	took := r.load.pace(ctx, r.config.Senders, entries/measure.EntriesPerBatch, r.config.Paced)
	phase, err := r.phase(ctx, took, before)
	close(stop)
	<-probed
	return phase, errors.Join(err, r.probes.failure)
}

// cpu returns what each process has used so far.
func (r *run) cpu() CPU {
	used := CPU{Weir: measure.UsageOf(r.subject.Pid()).CPU, Load: measure.UsageOf(os.Getpid()).CPU}
	if r.postmaster != 0 {
		used.Postgres = measure.FamilyUsage(r.postmaster).CPU
	}
	if r.broker != 0 {
		used.Broker = measure.UsageOf(r.broker).CPU
	}
	return used
}

// phase sums up a stretch of load.
func (r *run) phase(ctx context.Context, took time.Duration, before CPU) (Phase, error) {
	after, memory := r.cpu(), measure.UsageOf(r.subject.Pid())
	batches := max(1, r.load.batches.Load())
	each := func(after, before time.Duration) time.Duration { return (after - before) / time.Duration(batches) }
	return Phase{
		EntriesPerSecond: float64(batches*measure.EntriesPerBatch) / took.Seconds(),
		Batches:          batches,
		Answer:           [3]time.Duration(r.load.took.Percentiles(50, 99, 100)),
		CPU: CPU{
			Weir: each(after.Weir, before.Weir), Postgres: each(after.Postgres, before.Postgres),
			Broker: each(after.Broker, before.Broker), Load: each(after.Load, before.Load),
		},
		Memory: memory.Memory, Peak: memory.Peak,
	}, errors.Join(r.load.err(), context.Cause(ctx))
}
