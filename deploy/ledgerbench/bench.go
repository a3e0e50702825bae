package ledgerbench

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

// Config is what to measure with.
type Config struct {
	Dir         string   // for everything that is written; it must be empty
	DatabaseURL string   // an empty database; its schema "ledger" is made anew for each measurement
	Brokers     []string // a Kafka; none: the embedded broker, in this process
	Events      int      // records that a measurement of throughput applies
	Rebuilt     int      // records that the rebuild reads, and a round of checks compares
	Paced       time.Duration
	Only        []string // names of parts; none: all of them
	Profile     string   // file for a profile of this process while Spread is measured; empty: none
	Logger      *slog.Logger
}

// Organizations among which the load is spread.
const organizations = 1000

// A Result is what was measured. Rates are records of weir.logs.v1 a second, each a request of a
// client.
type Result struct {
	Spread, Hot, Two rate // 1,000 organizations, one organization, 1,000 with two replicas
	Single           rate // a transaction for each record
	Copy             rate // rows by COPY, into a table with the key of the ledger's own
	Lag              percentiles
	LagRate          float64 // records a second, while Lag was measured
	Balance, Usage   percentiles
	BalanceAlone     percentiles    // with nothing booked beside it
	Effort           effort         // of a record, in Spread
	Statements       statementTimes // of a record, in Spread; nil: not known
	Checks           share          // the effort of checking records, in that of applying them
	CheckLag         CheckLag
	Rebuild          time.Duration
	Rebuilt          int
}

type rate float64

// percentiles are p50 and p99.
type percentiles [2]time.Duration

// A part is measured with a log and a schema of its own.
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

// measures reports whether a part is asked for, or needed for one that is.
func (c Config) measures(part string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, part) || part == "spread" && slices.Contains(c.Only, "lag")
}

// Parts are the names of what can be measured. Lag is measured at half of the
// rate that spread has found.
func Parts() (names []string) {
	for _, part := range parts() {
		names = append(names, part.name)
	}
	return names
}

// Run measures one thing after another and reports on progress what it does.
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

// inWorld measures with a log and a schema of its own.
func inWorld(ctx context.Context, config Config, result *Result, measure func(context.Context, *world, *Result) error) error {
	w, err := newWorld(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(measure(ctx, w, result), w.close())
}

// rateOf measures how fast records of that many organizations are applied by that many replicas.
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

// measureSingle has so few records that it takes seconds.
func measureSingle(ctx context.Context, w *world, r *Result) (err error) {
	if err := w.accept(ctx, w.config.Events/40, organizations); err != nil {
		return err
	}
	r.Single, _, err = w.apply(ctx, 1, 1)
	return err
}

// measureRebuild takes the time in which ledger-rebuild makes a ledger of all
// records anew, seals its hours, and compares it with the other.
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
		err = fmt.Errorf("the ledger that was made anew is another one: %v", made.Differences)
	}
	r.Rebuild, r.Rebuilt = time.Since(begun), w.config.Rebuilt
	return err
}
