package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/process"
)

// Command measures part by part.
type Command struct {
	Events  int           `help:"Records for each measurement of a rate." default:"400000"`
	Rebuilt int           `help:"Records that the rebuild reads, and a round of checks compares." default:"1000000"`
	Paced   time.Duration `help:"How long to publish at half of the rate." default:"15s"`
	Only    []string      `help:"Measure these alone: ${ledger_parts}."`
	Profile string        `help:"File for a profile of this process while it charges 1,000 organizations, for go tool pprof." type:"path"`
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
	if min(c.Events, c.Rebuilt) < 1000 || c.Paced < time.Second {
		return errors.New("at least 1000 records and a second are needed to measure anything")
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
	{"hot", rated("one organization", 1, load{1, 1, 0}, asFast("of 1,000 organizations, goal 1.00"))},
	{"replicas", rated("1,000 organizations, two replicas", 1, load{organizations, 2, 0}, asFast("of one replica, goal above 1.00"))},
	{"single", rated("a transaction for each record", 40, load{organizations, 1, 1}, slower)}, // few, so that it takes seconds
	{"checks", (*bench).checks},
	{"checklag", (*bench).checkLag},
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

// statementKinds are the ledger's statements by purpose, matched by
// their text. The first match counts.
var statementKinds = []struct{ name, holds string }{
	{"COPY of the transfers, with their key", `COPY "transfers`},
	{"COPY into the inbox", `COPY "inbox`},
	{"usage by hour", "usage_hours"},
	{"usage by day", "usage_days"},
	{"account states: marked, read, published", "unpublished"},
	{"books", "books"},
	{"locks on organizations", "organizations"},
	{"ranges, and their checks", "ranges"},
	{"the rest", ""},
}

// statementTimes is how long statements took, including waits for the
// rows of a COPY, by index of their kind in statementKinds; nil: unknown.
type statementTimes []time.Duration

// statements returns how long PostgreSQL has taken for statements so
// far, if the database has the extension pg_stat_statements.
func (w *world) statements(ctx context.Context) (statementTimes, error) {
	var counted bool
	err := w.pool.QueryRow(ctx, `SELECT to_regclass('pg_stat_statements') IS NOT NULL`).Scan(&counted)
	if err != nil || !counted {
		return nil, err
	}
	rows, err := w.pool.Query(ctx, `SELECT s.query, s.total_exec_time FROM pg_stat_statements s
		JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = current_database()`)
	if err != nil {
		return nil, fmt.Errorf("cannot read pg_stat_statements: %w", err)
	}
	took := make(statementTimes, len(statementKinds))
	var text string
	var millis float64
	_, err = pgx.ForEachRow(rows, []any{&text, &millis}, func() error {
		took[kindOf(text)] += time.Duration(millis * float64(time.Millisecond))
		return nil
	})
	return took, err
}

// kindOf returns the index of a statement's kind.
func kindOf(text string) int {
	for kind := range statementKinds {
		if strings.Contains(text, statementKinds[kind].holds) {
			return kind
		}
	}
	return len(statementKinds) - 1
}

// perRecord returns the increase since before, for each of n records.
func (t statementTimes) perRecord(before statementTimes, n int) statementTimes {
	if before == nil {
		return nil
	}
	each := make(statementTimes, len(t))
	for kind := range t {
		each[kind] = (t[kind] - before[kind]) / time.Duration(n)
	}
	return each
}
