package throughput

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/testenv/apache"
)

// Command measures with each broker in turn.
type Command struct {
	Broker        string        `help:"Which brokers to measure with: embedded, kafka or both; sync: the embedded one with fsync and without." enum:"embedded,kafka,both,sync" default:"both"`
	Organizations int           `help:"Organizations that the load is spread over; each may make 1,800 requests a minute." default:"24"`
	Senders       int           `help:"How many post at the same time." default:"16"`
	WarmUp        time.Duration `help:"How long to warm up." default:"5s"`
	Saturated     time.Duration `help:"How long to post as fast as answers come." default:"15s"`
	Parts         []float64     `help:"Parts of full load to measure after it, in percent." default:"50,25,10"`
	Rates         []float64     `help:"Fixed rates to measure too, entries a second." default:"1000"`
	Paced         time.Duration `help:"How long to post at each of these rates, and again while views are looked at." default:"10s"`
	Rest          time.Duration `help:"How long to measure an installation that gets nothing." default:"10s"`
	Probes        int           `help:"Organizations whose views are looked at; 0: they are not." default:"3"`
}

// Help is called by kong.
func (Command) Help() string {
	return `A table for each broker has a column for each load: as much as is answered, parts of that, and fixed rates. The CPU of a batch is
that of each process; load, Weir, PostgreSQL and broker share the machine. With Apache Kafka a naive server stands beside: what one
writes in an afternoon. Sentences below the table say which goals are met. For less: --broker=embedded --parts=10 --saturated=30s.`
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
	return nil
}

// A broker is in the measured process, or else a process of its own.
type broker struct {
	name string
	sync kafka.Sync // empty: its own process
}

var (
	durable = broker{"embedded broker", kafka.SyncAlways}
	hasty   = broker{durable.name + ", no fsync", kafka.SyncOS}
	outside = broker{"Apache Kafka " + apache.Version, ""}
	brokers = map[string][]broker{"embedded": {durable}, "sync": {durable, hasty}, "kafka": {outside}, "both": {durable, outside}}
)

// Run measures, and prints a table for each broker.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) error {
	for _, b := range brokers[c.Broker] {
		subject.Say("Measuring with the %s:", b.name)
		var found *result
		err := subject.In(ctx, logger, func(dir, database string) (err error) {
			found, err = c.with(ctx, b, dir, database)
			return err
		})
		if errors.Is(err, apache.ErrMissing) {
			subject.Say("  skipped: %v", err)
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

// with starts all that a run needs, measures, and stops it again.
func (c *Command) with(ctx context.Context, b broker, dir, database string) (found *result, err error) {
	variables, node := map[string]string{"WEIR_DATABASE_URL": database, "WEIR_BROKERS": ""}, measure.Process{}
	if b != outside {
		variables["WEIR_BROKER_SYNC"] = string(b.sync)
	} else {
		kafka, err := apache.Start(ctx, apache.Config{Dir: filepath.Join(dir, "apache-kafka")})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, kafka.Stop()) }()
		node.Pid, variables["WEIR_BROKERS"] = kafka.Pid(), kafka.Addr()
	}
	err = subject.Run(ctx, dir, variables, func(w *subject.Weir) (err error) {
		r := &run{Command: c, weir: w, database: database, dir: dir}
		r.processes = []measure.Process{{Pid: w.Pid}, measure.Postmaster(ctx, database), node, {Pid: os.Getpid()}}
		if found, err = r.measure(ctx, b.name); err == nil && b == outside {
			found.naive, err = r.beside(ctx, []string{variables["WEIR_BROKERS"]}, found.phases)
		}
		return err
	})
	return found, err
}
