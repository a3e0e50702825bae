package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/testenv/measure"
)

const partitions = 8

func main() {
	if os.Getenv(envBroker) != "" {
		exitOn(serve())
		return
	}
	given := flag.String("brokers", os.Getenv("WEIR_TEST_BROKERS"), "addresses of a broker, host:port,…; empty: the embedded one alone")
	embedded := flag.Bool("embedded", true, "measure with the embedded broker as well")
	seconds := flag.Float64("seconds", 2, "how long each client sends")
	rounds := flag.Int("rounds", 3, "how often each client is measured")
	flag.Parse()
	span := time.Duration(*seconds * float64(time.Second))
	if *embedded {
		address, stop, err := startEmbedded()
		exitOn(err)
		exitOn(benchmark("the embedded broker", []string{address}, span, *rounds))
		stop()
	}
	if *given != "" {
		exitOn(benchmark("the broker at "+*given, strings.Split(*given, ","), span, *rounds))
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
}

// benchmark runs all measurements with one broker.
func benchmark(broker string, brokers []string, span time.Duration, rounds int) error {
	all := []contract.Topic{{Name: consumed, Partitions: partitions}}
	for _, l := range loads {
		all = append(all, l.topic())
	}
	if err := topics.Ensure(context.Background(), brokers, all); err != nil {
		return err
	}
	table := measure.NewTable(os.Stdout, fmt.Sprintf("With %s: %d partitions, acks=all, no compression, CPU of the client alone; median of %d.", broker, partitions, rounds))
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
	self, begun := measure.Process{Pid: os.Getpid()}, time.Now()
	busy := measure.CPU(self)
	messages, err := do()
	n := float64(max(1, messages))
	found[cpu] = measure.Since(busy, n*float64(size)/1e9, self)[0].Seconds()
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
