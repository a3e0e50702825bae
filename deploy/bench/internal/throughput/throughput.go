package throughput

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
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
	Parts         []float64     `help:"Parts of full load to measure after it, in percent." default:"50,25,10"`
	Rates         []float64     `help:"Fixed rates to measure too, entries a second." default:"1000"`
	Paced         time.Duration `help:"How long to post at each of these rates, and again while views are looked at." default:"10s"`
	Rest          time.Duration `help:"How long to measure an installation that gets nothing." default:"10s"`
	Probes        int           `help:"Organizations whose views are looked at; 0: they are not." default:"3"`
	Profiles      string        `help:"Directory for CPU profiles of the measured process." type:"existingdir"`
}

// Validate is called by kong.
func (c *Command) Validate() error {
	if c.Organizations < 1 || c.Senders < 1 || c.Probes < 0 || min(c.WarmUp, c.Saturated, c.Paced, c.Rest) <= 0 {
		return errors.New("numbers and times must be more than 0")
	}
	for _, rate := range slices.Concat(c.Rates, c.Parts) {
		if rate <= 0 {
			return fmt.Errorf("%g is no rate: it must be more than 0", rate)
		}
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

// Run measures, and prints a table for each broker.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) error {
	for n, b := range c.brokers() {
		fmt.Fprintf(os.Stdout, "Measuring with the %s:\n", b.name)
		found, err := c.with(ctx, b, fmt.Sprintf("%d.pprof", n), logger)
		if errors.Is(err, apache.ErrMissing) {
			say("skipped: %v; give the address of a Kafka with WEIR_BENCH_BROKERS", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("with the %s: %w", b.name, err)
		}
		if err := found.write(os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

func say(format string, values ...any) { fmt.Fprintf(os.Stdout, "  "+format+"\n", values...) }

// with starts all that a run needs, measures, and stops it again.
func (c *Command) with(ctx context.Context, b broker, profile string, logger *slog.Logger) (found *result, err error) {
	dir, url, closeAll, err := c.Database.Open(ctx, logger)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	variables, node, addresses := map[string]string{}, measure.Process{}, c.Brokers
	switch {
	case b.sync != "":
		variables["WEIR_BROKER_SYNC"], addresses = string(b.sync), nil
	case b.name == started:
		kafka, err := apache.Start(ctx, apache.Config{Dir: filepath.Join(dir, "apache-kafka")})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, kafka.Stop()) }()
		node.Pid, addresses = kafka.Pid(), []string{kafka.Addr()}
	}
	variables["WEIR_BROKERS"], variables["WEIR_DATABASE_URL"] = strings.Join(addresses, ","), url
	if c.Profiles != "" {
		variables["WEIR_CPU_PROFILE"] = filepath.Join(c.Profiles, profile)
	}
	weir, err := c.Program.Start(ctx, filepath.Join(dir, "weir"), variables)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, weir.Stop()) }()
	r := &run{Command: c, weir: weir, database: url, dir: dir, processes: []measure.Process{
		{Pid: weir.Pid()}, measure.Postmaster(ctx, url), node, {Pid: os.Getpid()},
	}}
	if found, err = r.measure(ctx, b.name); err != nil || addresses == nil {
		return found, err
	}
	found.naive, err = c.beside(ctx, filepath.Join(dir, "naive"), addresses, node, found.phases)
	return found, err
}
