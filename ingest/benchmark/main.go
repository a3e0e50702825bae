package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/embedded/postgres"
)

const help = `benchmark stores a day of entries, like those of a shop's services, in Weir's log store on
PostgreSQL and in VictoriaLogs, and asks both the same. Answers that differ are a failure.

`

// options are what is measured.
type options struct {
	entries  int
	victoria string         // VictoriaLogs' program; "": it is left out
	each     time.Duration  // for how long a question is repeated at most
	repeats  int            // how often it is repeated at most
	profiles string         // folder for a CPU profile of storing and of each question; "": none
	only     *regexp.Regexp // names of questions to ask
}

// short is a run for a moment, which still has blocks and searches of every kind.
const short = 200_000

func main() {
	var o options
	flag.IntVar(&o.entries, "entries", 10_000_000, "how many entries are stored")
	flag.StringVar(&o.victoria, "victoria", "", "program of VictoriaLogs; \"\": without it")
	flag.DurationVar(&o.each, "each", 20*time.Second, "for how long a question is repeated at most, but three times, for each store")
	flag.IntVar(&o.repeats, "repeats", 40, "how often it is repeated at most, each time with other values")
	flag.StringVar(&o.profiles, "profiles", "", "folder for a CPU profile of storing and of each question")
	o.only = regexp.MustCompile("")
	flag.Func("only", "ask only questions whose names match this, such as 'word|trace'", func(text string) (err error) {
		o.only, err = regexp.Compile(text)
		return err
	})
	brief := flag.Bool("short", false, fmt.Sprintf("store %d entries, and ask three times", short))
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), help)
		flag.PrintDefaults()
	}
	flag.Parse()
	if *brief {
		o.entries, o.repeats = short, 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, o); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

// run measures each store in turn, alone on the machine, and prints a table.
func run(ctx context.Context, out io.Writer, o options) (err error) {
	dir, err := os.MkdirTemp("", "weir-bench-store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL may run as another user
		return err
	}
	server, err := postgres.Start(ctx, postgres.Config{
		Dir: filepath.Join(dir, "postgres"), Logger: slog.New(slog.DiscardHandler), Throwaway: true, Durable: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop(context.WithoutCancel(ctx))) }()
	weir, err := newWeir(ctx, server.URL())
	if err != nil {
		return err
	}
	defer weir.close()
	stores := []store{weir}
	second, err := postgres.Start(ctx, postgres.Config{
		Dir: filepath.Join(dir, "postgres-2"), Logger: slog.New(slog.DiscardHandler), Throwaway: true, Durable: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, second.Stop(context.WithoutCancel(ctx))) }()
	moved, err := newOnClickHouse(ctx, second.URL(), filepath.Join(dir, "chdb"))
	if err != nil {
		fmt.Fprintf(out, "WITHOUT CLICKHOUSE: %v\n", err)
	} else {
		stores = append(stores, moved)
		defer func() { err = errors.Join(err, moved.close()) }()
	}
	victoria, err := newVictoria(ctx, o.victoria, dir)
	if err != nil {
		fmt.Fprintf(out, "WITHOUT VICTORIALOGS, beside which Weir is measured: %v\n", err)
	} else {
		stores = append(stores, victoria)
		defer func() { err = errors.Join(err, victoria.close()) }()
	}
	r := &result{options: o}
	for _, s := range stores {
		fmt.Fprintf(out, "storing %d entries in %s\n", o.entries, s.name())
		if err := r.store(ctx, s); err != nil {
			return fmt.Errorf("%s: %w", s.name(), err)
		}
	}
	if err := r.ask(ctx, out, stores); err != nil {
		return err
	}
	return r.print(out)
}
