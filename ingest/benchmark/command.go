package benchmark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"time"
)

// Command is what is measured.
type Command struct {
	Entries  int           `help:"How many entries are stored." default:"10000000"`
	Victoria string        `help:"Program of VictoriaLogs; empty: without it." type:"path"`
	Each     time.Duration `help:"For how long a question is repeated at most, but three times, for each store." default:"20s"`
	Repeats  int           `help:"How often it is repeated at most, each time with other values." default:"40"`
	Profiles string        `help:"Folder for a CPU profile of storing and of each question." type:"path"`
	Only     string        `help:"Ask only questions whose names match this, such as 'word|trace'."`
	Short    bool          `help:"Store 200,000 entries, and ask three times."`

	only *regexp.Regexp
}

// Help is called by kong.
func (*Command) Help() string {
	return `It stores a day of entries, like those of a shop's services, in Weir's log store on PostgreSQL, on ClickHouse, and in VictoriaLogs, and asks
all the same. Answers that differ are a failure.`
}

// short is a run for a moment, which still has blocks and searches of every kind.
const short = 200_000

// Validate is called by kong.
func (c *Command) Validate() (err error) {
	if c.Short {
		c.Entries, c.Repeats = short, 3
	}
	c.only, err = regexp.Compile(c.Only)
	return err
}

// Measure measures each store in turn, alone on the machine, in a folder, on a
// database for blocks and on one for what moves to ClickHouse, and prints a table.
func (c *Command) Measure(ctx context.Context, out io.Writer, dir, blocks, moving string) (err error) {
	weir, err := newWeir(ctx, blocks)
	if err != nil {
		return err
	}
	defer weir.close()
	stores := []store{weir}
	moved, err := newOnClickHouse(ctx, moving, filepath.Join(dir, "chdb"))
	if err != nil {
		fmt.Fprintf(out, "WITHOUT CLICKHOUSE: %v\n", err)
	} else {
		stores = append(stores, moved)
		defer func() { err = errors.Join(err, moved.close()) }()
	}
	victoria, err := newVictoria(ctx, c.Victoria, dir)
	if err != nil {
		fmt.Fprintf(out, "WITHOUT VICTORIALOGS, beside which Weir is measured: %v\n", err)
	} else {
		stores = append(stores, victoria)
		defer func() { err = errors.Join(err, victoria.close()) }()
	}
	r := &result{Command: *c}
	for _, s := range stores {
		fmt.Fprintf(out, "storing %d entries in %s\n", c.Entries, s.name())
		if err := r.store(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	if err := r.ask(ctx, out, stores); err != nil {
		return err
	}
	return r.print(out)
}
