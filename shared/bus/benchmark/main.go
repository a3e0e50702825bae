package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/measure"
)

const partitions = 8

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	run := compare
	if len(os.Args) > 1 && os.Args[1] == broker {
		run = serve
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

// broker is the command that makes this program an embedded broker, in a
// process of its own so that its CPU is not counted as a client's.
const broker = "broker"

// serve runs the broker until ctx ends.
func serve(ctx context.Context) error {
	return inDir(func(dir string) error {
		embedded, err := kafka.Start(kafka.Config{Open: true, Dir: dir, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		fmt.Fprintln(os.Stdout, embedded.Addr())
		<-ctx.Done()
		return embedded.Close()
	})
}

func inDir(do func(dir string) error) error {
	dir, err := os.MkdirTemp("", "weir-bench-bus-")
	if err != nil {
		return err
	}
	return errors.Join(do(dir), os.RemoveAll(dir))
}

// compare measures with the embedded broker, then with a given one.
func compare(ctx context.Context) error {
	seconds := flag.Float64("seconds", 2, "how long each client sends")
	rounds := flag.Int("rounds", 3, "how often each client is measured")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "Compares the bus with other clients of Kafka, on the embedded broker and on that of WEIR_TEST_BROKERS.")
		flag.PrintDefaults()
	}
	flag.Parse()
	span := time.Duration(*seconds * float64(time.Second))
	err := inDir(func(dir string) error {
		embedded, address, err := measure.Again(ctx, dir, broker, nil)
		if err != nil {
			return err
		}
		err = benchmark("the embedded broker", []string{address}, span, *rounds)
		_, stopped := embedded.Stop()
		return errors.Join(err, stopped)
	})
	if given := os.Getenv("WEIR_TEST_BROKERS"); err == nil && given != "" {
		err = benchmark("the broker at "+given, strings.Split(given, ","), span, *rounds)
	}
	return err
}

// benchmark runs all measurements with one broker.
func benchmark(name string, brokers []string, span time.Duration, rounds int) error {
	all := []contract.Topic{{Name: consumed, Partitions: partitions}}
	for _, l := range loads {
		all = append(all, l.topic())
	}
	if err := topics.Ensure(context.Background(), brokers, all); err != nil {
		return err
	}
	table := measure.NewTable(os.Stdout, fmt.Sprintf("With %s: %d partitions, acks=all, no compression, CPU of the client alone; median of %d.", name, partitions, rounds))
	var reached goals
	for _, l := range loads {
		table.Row("publish "+l.String(), "messages/s", "MB/s", "CPU s/GB", "allocs/msg", "p50 / p99")
		reached.published(l, l.measure(table, brokers, span, rounds))
	}
	if url := os.Getenv("WEIR_TEST_DATABASE_URL"); url != "" {
		if err := consuming(table, brokers, url, &reached); err != nil {
			return err
		}
	}
	for _, row := range reached {
		table.Row(row)
	}
	return table.Flush()
}

// A result is a client's measurement.
type result [figures]float64

// The figures of a result.
const (
	rate   = iota // messages/s
	cpu           // CPU s/GB
	allocs        // allocations a message
	p50           // nanoseconds
	p99
	figures // how many there are
)

// row prints it.
func (r result) row(table measure.Table, client string, size int) {
	table.Row("  "+client, fmt.Sprintf("%.0f", r[rate]), fmt.Sprintf("%.1f", r[rate]*float64(size)/1e6), fmt.Sprintf("%.2f", r[cpu]),
		fmt.Sprintf("%.1f", r[allocs]), measure.Millis(time.Duration(r[p50]), time.Duration(r[p99])))
}

// median is that of each figure.
func median(all []result) (m result) {
	for figure := range m {
		values := make([]float64, len(all))
		for i, r := range all {
			values[i] = r[figure]
		}
		slices.Sort(values)
		m[figure] = values[len(values)/2]
	}
	return m
}

// used measures what do costs this process for each of the messages that it
// handles.
func used(size int, do func() (messages int64, err error)) (found result, err error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun, busy := time.Now(), measure.CPU(measure.Process{Pid: os.Getpid()})
	messages, err := do()
	n := float64(max(1, messages))
	found[cpu] = busy(n * float64(size) / 1e9)[0].Seconds()
	runtime.ReadMemStats(&after)
	found[rate], found[allocs] = float64(messages)/time.Since(begun).Seconds(), float64(after.Mallocs-before.Mallocs)/n
	return found, err
}

// goals compares the measurements of one run with the bus's goals.
type goals []string

func (g *goals) atMost(value float64, goal string, limit float64) {
	*g = append(*g, measure.Goal(value <= limit, "%.2f %s, goal: at most %.1f", value, goal, limit))
}

func (g *goals) atLeast(value float64, goal string, limit float64) {
	*g = append(*g, measure.Goal(value >= limit, "%.2f %s, goal: at least %.1f", value, goal, limit))
}

// published judges one load.
func (g *goals) published(l load, found map[string]result) {
	ours, franz, watermill := found["bus"], found["franz-go"], found["watermill-kafka"]
	if ours[rate] == 0 || franz[rate] == 0 || watermill[rate] == 0 {
		return
	}
	g.atMost(ours[cpu]/franz[cpu], fmt.Sprintf("CPU per GB of franz-go's, publishing %s", l), 1.3)
	if !l.waits() { // else the broker decides
		g.atLeast(ours[rate]/watermill[rate], fmt.Sprintf("times watermill-kafka's messages/s, publishing %s", l), 3)
	}
	if l.callers == 1 {
		g.atMost(ours[p50]/float64(time.Millisecond), "ms until a lone message is acknowledged, median", 1)
	}
}
