package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/bus/topics"
	"github.com/weirlog/weir/shared/contract"
)

const partitions = 8

// client is one client under measurement: send writes one message and
// returns once all replicas have it.
type client struct {
	name     string
	settings string
	send     func(ctx context.Context, topic string, key string, value []byte) error
	batch    func(topic string, value []byte) error // a hundred messages in one call
	close    func()
}

// load is the messages that are sent: size bytes each, from so many
// callers at once.
type load struct {
	size, callers int
	batch         bool // a hundred messages a call, else one
}

func (l load) String() string {
	return fmt.Sprintf("%d bytes, %d callers, %d messages a call", l.size, l.callers, l.messages())
}

// waits reports whether all clients mostly wait for the broker's answers or disk.
func (l load) waits() bool { return l.callers == 1 || l.size > 10<<10 }

func (l load) topic() contract.Topic {
	return contract.Topic{Name: fmt.Sprintf("test.bench.%d.%d.%v", l.size, l.callers, l.batch), Partitions: partitions,
		Config: map[string]string{"retention.bytes": "100000000", "segment.bytes": "20000000"}}
}

func (l load) messages() int {
	if l.batch {
		return 100
	}
	return 1
}

func main() {
	if os.Getenv(envBroker) != "" {
		exit(serve())
	}
	given := flag.String("brokers", os.Getenv("WEIR_TEST_BROKERS"), "addresses of a broker, host:port,…; empty: the embedded one alone")
	embedded := flag.Bool("embedded", true, "measure with the embedded broker as well")
	seconds := flag.Float64("seconds", 2, "how long each client sends")
	rounds := flag.Int("rounds", 3, "how often each client is measured")
	profile := flag.String("profile", "", "write a CPU profile there")
	only := flag.String("only", "", "measure only clients whose name contains this")
	load := flag.Int("load", -1, "measure only this load, counted from 0")
	flag.IntVar(&inFlight, "inflight", 0, "requests of the bus to one broker at the same time")
	flag.Parse()
	if *profile != "" {
		f, err := os.Create(*profile)
		exitOn(err)
		pprof.StartCPUProfile(f)
		defer pprof.StopCPUProfile()
	}
	if *load >= 0 {
		loads = loads[*load : *load+1]
	}
	span := time.Duration(*seconds * float64(time.Second))
	if *embedded {
		address, stop, err := startEmbedded()
		exitOn(err)
		benchmark("the embedded broker", []string{address}, span, *rounds, *only)
		stop()
	}
	if *given != "" {
		benchmark("the broker at "+*given, strings.Split(*given, ","), span, *rounds, *only)
	}
}

func exitOn(err error) {
	if err != nil {
		exit(err)
	}
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmark:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// benchmark runs all measurements with one broker.
func benchmark(broker string, brokers []string, span time.Duration, rounds int, only string) {
	fmt.Printf("=== %s, %s, %d CPUs, %d partitions, acks=all, no compression, CPU of the client alone\n\n", broker, runtime.Version(), runtime.NumCPU(), partitions)
	reached := &goals{}
	publishing(brokers, span, rounds, only, reached)
	if url := os.Getenv("WEIR_TEST_DATABASE_URL"); url != "" && only == "" {
		consuming(brokers, url, reached)
	}
	reached.print()
}

type result struct {
	rate, cpu, allocs float64 // messages/s, CPU s/GB, allocations a message
	p50, p99          time.Duration
}

// loads are single messages, many callers with one each, few with
// batches, and large messages.
var loads = []load{{1 << 10, 1, false}, {1 << 10, 256, false}, {1 << 10, 4, true}, {48 << 10, 64, false}}

func publishing(brokers []string, span time.Duration, rounds int, only string, reached *goals) {
	all := []contract.Topic{{Name: consumed, Partitions: partitions}}
	for _, l := range loads {
		all = append(all, l.topic())
	}
	exitOn(topics.Ensure(context.Background(), brokers, all))
	for _, l := range loads {
		fmt.Printf("publish %s, each call waits until they are written; median of %d\n", l, rounds)
		fmt.Printf("  %-16s %10s %8s %10s %12s %10s %10s\n", "client", "messages/s", "MB/s", "CPU s/GB", "allocs/msg", "p50", "p99")
		for round := range rounds + 1 { // the first one warms the broker up
			for i := range candidates {
				c := &candidates[(i+round)%len(candidates)]
				if r, ok := c.measure(brokers, l, span, only); ok && round > 0 {
					c.results = append(c.results, r)
				}
			}
		}
		found := make(map[string]result)
		for i := range candidates {
			found[candidates[i].name] = candidates[i].print(l)
		}
		reached.published(l, found)
		fmt.Println()
	}
}

// candidate is a client with its measurements of one load.
type candidate struct {
	open     func([]string) (client, error)
	name     string
	settings string
	results  []result
}

var candidates = []candidate{{open: openBus}, {open: openFranz}, {open: openWriter}, {open: openWatermill}}

func (c *candidate) measure(brokers []string, l load, span time.Duration, only string) (result, bool) {
	p, err := c.open(brokers)
	if err != nil {
		fmt.Println("  cannot open:", err)
		return result{}, false
	}
	defer p.close()
	c.name, c.settings = p.name, p.settings
	if !strings.Contains(p.name, only) {
		return result{}, false
	}
	r, err := measure(p, l.topic().Name, l, span)
	if err != nil {
		fmt.Printf("  %-16s %v\n", p.name, err)
	}
	return r, err == nil
}

// print writes the medians and returns them.
func (c *candidate) print(l load) result {
	if len(c.results) == 0 {
		return result{}
	}
	median := func(of func(result) float64) float64 {
		values := make([]float64, len(c.results))
		for i, r := range c.results {
			values[i] = of(r)
		}
		slices.Sort(values)
		return values[len(values)/2]
	}
	m := result{
		rate: median(func(r result) float64 { return r.rate }), cpu: median(func(r result) float64 { return r.cpu }),
		allocs: median(func(r result) float64 { return r.allocs }),
		p50:    time.Duration(median(func(r result) float64 { return float64(r.p50) })), p99: time.Duration(median(func(r result) float64 { return float64(r.p99) })),
	}
	fmt.Printf("  %-16s %10.0f %8.1f %10.2f %12.1f %10s %10s   %s\n", c.name, m.rate, m.rate*float64(l.size)/1e6, m.cpu, m.allocs, m.p50, m.p99, c.settings)
	c.results = nil
	return m
}

// usage is what the process has used so far.
type usage struct {
	at     time.Time
	cpu    time.Duration
	allocs uint64
}

func used() usage {
	var r syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &r)
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	cpu := time.Duration(r.Utime.Nano() + r.Stime.Nano())
	return usage{time.Now(), cpu, m.Mallocs}
}

func measure(p client, topic string, l load, span time.Duration) (result, error) {
	ctx := context.Background()
	if _, _, err := run(ctx, p, topic, l, span/4); err != nil { // warm up
		return result{}, err
	}
	runtime.GC()
	before := used()
	n, latencies, err := run(ctx, p, topic, l, span)
	after := used()
	if err != nil {
		return result{}, err
	}
	return result{
		rate: float64(n) / after.at.Sub(before.at).Seconds(), cpu: (after.cpu - before.cpu).Seconds() / (float64(n) * float64(l.size) / 1e9),
		allocs: float64(after.allocs-before.allocs) / float64(n), p50: latencies.at(0.5), p99: latencies.at(0.99),
	}, nil
}

// run sends for a while and returns how many messages were
// acknowledged, and their latencies.
func run(ctx context.Context, p client, topic string, l load, span time.Duration) (int64, *histogram, error) {
	var sent atomic.Int64
	var failed atomic.Pointer[error]
	h := &histogram{}
	end := time.Now().Add(span)
	var wg sync.WaitGroup
	for c := range l.callers {
		wg.Go(func() {
			value := payload(l.size)
			for i := 0; time.Now().Before(end) && failed.Load() == nil; i++ {
				began := time.Now()
				var err error
				if l.batch {
					err = p.batch(topic, value)
				} else {
					err = p.send(ctx, topic, fmt.Sprintf("key-%d-%d", c, i%7), value)
				}
				if err != nil {
					failed.Store(&err)
					return
				}
				h.add(time.Since(began))
				sent.Add(int64(l.messages()))
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return sent.Load(), h, *err
	}
	return sent.Load(), h, nil
}

func payload(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8)
	}
	return b
}
