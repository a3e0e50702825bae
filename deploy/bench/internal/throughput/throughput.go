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
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/testenv/apache"
)

// Command measures with each broker in turn.
type Command struct {
	Broker    string        `help:"Which brokers to measure with: embedded, kafka or both." enum:"embedded,kafka,both" default:"both"`
	Saturated time.Duration `help:"How long to post as fast as answers come." default:"15s"`
	Parts     []float64     `help:"Parts of full load to measure after it, in percent." default:"50,25,10"`
	Short     bool          `help:"Measure very little, for moments, as the tests do."`

	scale scale
}

// A scale is how much is measured, for how long.
type scale struct {
	organizations, senders, watched int           // each organization may make 1,800 requests a minute
	warmUp, paced, rest             time.Duration // paced: at each part of full load, and again while views are looked at
}

var (
	full  = scale{24, 16, 3, 5 * time.Second, 10 * time.Second, 20 * time.Second}
	short = scale{2, 2, 1, 100 * time.Millisecond, 500 * time.Millisecond, 100 * time.Millisecond}
)

// rate is measured after the parts of full load, in entries a second.
const rate = 1000

// Help is called by kong.
func (Command) Help() string {
	return `A table for each broker has a column for each load: as much as is answered, parts of that, and a fixed rate. The CPU of a batch is
that of each process; load, Weir, PostgreSQL and broker share the machine. A naive server stands beside, with a broker of its own if
Weir has one: what one writes in an afternoon. Sentences below the table say which goals are met. For less: --broker=embedded --parts=10 --saturated=30s.`
}

// Validate is called by kong.
func (c *Command) Validate() error {
	if c.scale = full; c.Short {
		c.scale, c.Saturated, c.Parts = short, short.paced, c.Parts[:1]
	}
	if c.Saturated <= 0 || slices.Min(append(c.Parts, 1)) <= 0 {
		return errors.New("--saturated and --parts must be more than 0")
	}
	return nil
}

// brokers by their option: the embedded one in the measured process, Apache Kafka in its own.
var (
	outside = "Apache Kafka " + apache.Version
	brokers = map[string][]string{"embedded": {"Embedded broker"}, "kafka": {outside}, "both": {"Embedded broker", outside}}
)

// Run measures, and prints a table for each broker.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) error {
	for _, b := range brokers[c.Broker] {
		subject.Say("Measuring with: %s", b)
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
			return fmt.Errorf("with %s: %w", b, err)
		}
		if err := found.write(os.Stdout); err != nil {
			return err
		}
	}
	return nil
}

// with starts all that a run needs, measures, and stops it again.
func (c *Command) with(ctx context.Context, broker, dir, database string) (found *result, err error) {
	variables, node := map[string]string{"WEIR_DATABASE_URL": database, "WEIR_BROKERS": ""}, measure.Process{}
	if broker == outside {
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
		found = &result{broker: broker}
		if err = r.measure(ctx, found); err == nil {
			found.naive, err = r.beside(ctx, strings.Fields(variables["WEIR_BROKERS"]), found.phases)
		}
		return err
	})
	return found, err
}
