package ledger

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	ledger "github.com/weirlog/weir/ledger/app"
)

// Config configures a benchmark.
type Config struct {
	Dir         string   // for all files; it must be empty
	DatabaseURL string   // of an empty database; its schema "ledger" is recreated for each measurement
	Brokers     []string // a Kafka; none: the embedded broker, in this process
	Events      int      // records applied by a measurement of throughput
	Rebuilt     int      // records read by the rebuild, and compared in a round of checks
	Paced       time.Duration
	Only        []string // names of parts; none: all
	Profile     string   // file for a profile of this process while Spread is measured; empty: none
	Logger      *slog.Logger
}

// The load is spread over so many organizations.
const organizations = 1000

// A Result holds the measurements. Rates are records of weir.logs.v1 a
// second, each a client's request.
type Result struct {
	Spread, Hot, Two rate // 1,000 organizations, one organization, 1,000 with two replicas
	Single           rate // a transaction for each record
	Copy             rate // rows by COPY, into a table with the ledger's key
	Lag              percentiles
	LagRate          float64 // records a second, during Lag
	Balance, Usage   percentiles
	BalanceAlone     percentiles    // with no bookings beside it
	Effort           effort         // per record, in Spread
	Statements       statementTimes // per record, in Spread; nil: unknown
	Checks           share          // the effort of checking records, relative to that of applying them
	CheckLag         CheckLag
	Rebuild          time.Duration
	Rebuilt          int
}

type rate float64

// percentiles are p50 and p99.
type percentiles [2]time.Duration

// A part is measured with its own log and schema.
type part struct {
	name    string
	measure func(context.Context, *world, *Result) error
}

func parts() []part {
	return []part{
		{"copy", measureCopy},
		{"spread", measureSpread},
		{"hot", rateOf(1, 1, func(r *Result, found rate) { r.Hot = found })},
		{"replicas", rateOf(organizations, 2, func(r *Result, found rate) { r.Two = found })},
		{"single", measureSingle},
		{"checks", measureChecks},
		{"checklag", measureCheckLag},
		{"lag", measureLag},
		{"usage", measureUsage},
		{"rebuild", measureRebuild},
	}
}

// measures reports whether a part is requested, or needed for one that is.
func (c Config) measures(part string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, part) || part == "spread" && slices.Contains(c.Only, "lag")
}

// Parts returns the names of the parts. Lag is measured at half
// of Spread's rate.
func Parts() (names []string) {
	for _, part := range parts() {
		names = append(names, part.name)
	}
	return names
}

// Run measures part by part and writes its steps to progress.
func Run(ctx context.Context, config Config, progress io.Writer) (result Result, err error) {
	for _, part := range parts() {
		if !config.measures(part.name) {
			continue
		}
		begun := time.Now()
		if err := inWorld(ctx, config, &result, part.measure); err != nil {
			return result, fmt.Errorf("cannot measure %s: %w", part.name, err)
		}
		fmt.Fprintf(progress, "  %s: %s\n", part.name, time.Since(begun).Round(time.Second))
	}
	return result, nil
}

// inWorld measures with a new log and schema.
func inWorld(ctx context.Context, config Config, result *Result, measure func(context.Context, *world, *Result) error) error {
	w, err := newWorld(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(measure(ctx, w, result), w.close())
}

// rateOf measures how fast that many replicas apply the records of
// that many organizations.
func rateOf(organizations, replicas int, note func(r *Result, found rate)) func(context.Context, *world, *Result) error {
	return func(ctx context.Context, w *world, r *Result) error {
		if err := w.accept(ctx, w.config.Events, organizations); err != nil {
			return err
		}
		found, _, err := w.apply(ctx, replicas, 0)
		note(r, found)
		return err
	}
}

// measureSingle has few records, so that it takes seconds.
func measureSingle(ctx context.Context, w *world, r *Result) (err error) {
	if err := w.accept(ctx, w.config.Events/40, organizations); err != nil {
		return err
	}
	r.Single, _, err = w.apply(ctx, 1, 1)
	return err
}

// measureRebuild measures how long ledger-rebuild takes to rebuild a
// ledger from all records, seal its hours, and compare it with the other.
func measureRebuild(ctx context.Context, w *world, r *Result) error {
	if err := w.accept(ctx, w.config.Rebuilt, organizations); err != nil {
		return err
	}
	if _, _, err := w.apply(ctx, 1, 0); err != nil {
		return err
	}
	begun := time.Now()
	made, err := ledger.Rebuild(ctx, w.ledger(0), w.config.Logger)
	if err == nil && len(made.Differences) > 0 {
		err = fmt.Errorf("the rebuilt ledger differs: %v", made.Differences)
	}
	r.Rebuild, r.Rebuilt = time.Since(begun), w.config.Rebuilt
	return err
}
