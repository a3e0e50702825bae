package ledger

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/process"
)

// Command measures part by part.
type Command struct {
	Only    []string `help:"Measure these alone: ${ledger_parts}."`
	Profile string   `help:"File for a profile of this process while it charges 1,000 organizations, for go tool pprof." type:"path"`
	Short   bool     `help:"Measure a hundredth of the records, for seconds."`

	charged, rebuilt int           // records for each measurement of a rate, and for the rebuild and a round of checks
	paced            time.Duration // how long to publish at half of the rate
}

// memory gives this process's garbage collector the room of a ledger's,
// and that for the embedded broker's log.
const memory = 8 << 30

// Help is called by kong.
func (Command) Help() string {
	return `The ledger alone, in this process: records in the broker become committed books. Beside its rates stands what COPY alone reaches
with the same PostgreSQL in the same run; beside its times stand the goals.`
}

// Validate is called by kong.
func (c *Command) Validate() error {
	if c.charged, c.rebuilt, c.paced = 400_000, 1_000_000, 15*time.Second; c.Short {
		c.charged, c.rebuilt, c.paced = c.charged/100, c.rebuilt/100, time.Second
	}
	return nil
}

// parts are measured each with its own log and schema.
var parts = []struct {
	name    string
	measure func(*bench, context.Context, *world) error
}{
	{"copy", (*bench).copyAlone},
	{"spread", (*bench).spread},
	{"hot", rated("one organization", load{1, 1}, "of 1,000 organizations, goal 1.00")},
	{"replicas", rated("1,000 organizations, two replicas", load{organizations, 2}, "of one replica, goal above 1.00")},
	{"checks", (*bench).checks},
	{"lag", (*bench).lag},
	{"usage", (*bench).usage},
	{"rebuild", (*bench).rebuild},
}

// Parts returns the names of the parts.
func Parts() (names []string) {
	for _, part := range parts {
		names = append(names, part.name)
	}
	return names
}

// measures reports whether a part is requested, or needed for one that is:
// lag is measured at half of spread's rate.
func (c *Command) measures(part string) bool {
	return len(c.Only) == 0 || slices.Contains(c.Only, part) || part == "spread" && slices.Contains(c.Only, "lag")
}

// Run measures and prints a table.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) error {
	process.Memory{MemoryLimit: memory}.Apply()
	return subject.In(ctx, logger, func(dir, database string) error {
		b := &bench{Command: c, logger: logger, processes: []measure.Process{measure.Postmaster(ctx, database), {Pid: os.Getpid()}}}
		subject.Say("Measuring the ledger:")
		for _, part := range parts {
			if !c.measures(part.name) {
				continue
			}
			begun := time.Now()
			err := in(ctx, world{dir: dir, url: database, logger: logger}, func(w *world) error { return part.measure(b, ctx, w) })
			if err != nil {
				return fmt.Errorf("cannot measure %s: %w", part.name, err)
			}
			subject.Say("  %s: %s", part.name, time.Since(begun).Round(time.Second))
		}
		table := measure.NewTable(os.Stdout, "Records of weir.logs.v1, each a request; the ledger, PostgreSQL, broker and load share the machine.")
		for _, row := range b.rows {
			table.Row(row...)
		}
		return table.Flush()
	})
}

// A bench is the measurements so far. Rates are records of weir.logs.v1 a
// second, each a client's request.
type bench struct {
	*Command

	logger    *slog.Logger
	processes []measure.Process // PostgreSQL, and this one: the ledger, the embedded broker, and the measurement
	rows      [][]string        // what, figure, goal
	copied    float64           // rows a second by COPY; 0: not measured
	rate      float64           // of 1,000 organizations and one replica; 0: not measured
}

func (b *bench) note(what, figure, goal string) {
	b.rows = append(b.rows, []string{what, figure, goal})
}

// within is the goal of a p99.
func within(took []time.Duration, most time.Duration) string {
	return measure.Goal(took[1] <= most, "p99 within %s", most)
}

// statements returns the milliseconds that PostgreSQL has taken so far for
// each kind of statement by its beginning, waits for the rows of a COPY
// included; none without the extension pg_stat_statements.
func (w *world) statements(ctx context.Context) (map[string]float64, error) {
	took := map[string]float64{} // bounded by the ledger's statements
	var counted bool
	err := w.pool.QueryRow(ctx, `SELECT to_regclass('pg_stat_statements') IS NOT NULL`).Scan(&counted)
	if err != nil || !counted {
		return took, err
	}
	rows, err := w.pool.Query(ctx, `SELECT regexp_replace(left(regexp_replace(s.query, '\s+', ' ', 'g'), 60), '_[0-9]{8}', ''), sum(s.total_exec_time)
		FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database() GROUP BY 1`)
	if err != nil {
		return nil, fmt.Errorf("cannot read pg_stat_statements: %w", err)
	}
	var text string
	var millis float64
	_, err = pgx.ForEachRow(rows, []any{&text, &millis}, func() error {
		took[text] = millis
		return nil
	})
	return took, err
}
