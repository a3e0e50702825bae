package throughput

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
	dir, remove, err := subject.Workplace()
	if err != nil {
		return err
	}
	defer remove()
	var results []*result
	for _, b := range c.brokers() {
		fmt.Fprintf(os.Stdout, "Measuring with the %s:\n", b.name)
		found := &result{broker: b.name}
		err := c.with(ctx, b, filepath.Join(dir, fmt.Sprint(len(results))), found, logger)
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
func (c *Command) with(ctx context.Context, b broker, dir string, found *result, logger *slog.Logger) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
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
	url, stop, err := c.Database.Start(ctx, dir, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	variables["WEIR_DATABASE_URL"] = url
	if c.Profiles != "" {
		variables["WEIR_CPU_PROFILE"] = filepath.Join(c.Profiles, filepath.Base(dir)+".pprof")
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
