package front

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/bench/internal/naive"
	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/ingest/benchmark"
	embedded "github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/measure"
	"github.com/weirlog/weir/shared/testenv/apache"
)

// Command measures requests of each kind.
type Command struct {
	Each      time.Duration `help:"For how long requests of a kind are sent." default:"10s"`
	Collector string        `help:"Program of the OpenTelemetry Collector, beside which OTLP is measured; empty: without it." type:"path"`
	Embedded  bool          `help:"Use the embedded broker where Apache Kafka could run, too."`
	Only      string        `help:"Send only kinds of requests whose names match this, such as 'OTLP|429'."`
	Profiles  string        `help:"Address at which the front door serves /debug/pprof, such as 127.0.0.1:9464." placeholder:"ADDRESS"`
	Short     bool          `help:"Measure very little, for moments, as the tests do."`

	only *regexp.Regexp
}

// Help is called by kong.
func (Command) Help() string {
	return `A row for each kind of request: how many are answered a second, what one costs the server's process, and how long it takes. The
broker is Apache Kafka where it can run, else the embedded one in the measuring process: its processor time is nobody's. The naive
server writes to the same broker. The Collector receives the same bytes as OTLP and throws them away.`
}

// senders send at once.
const senders = 16

// Keys of two organizations.
var (
	key       = "weir_" + strings.Repeat("a", 48)
	exhausted = "weir_" + strings.Repeat("b", 48)
)

// Validate is called by kong.
func (c *Command) Validate() (err error) {
	if c.Short {
		c.Each = 300 * time.Millisecond
	}
	c.only, err = regexp.Compile(c.Only)
	return err
}

// Run measures, and prints a table.
func (c *Command) Run(ctx context.Context, logger *slog.Logger) (err error) {
	dir, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	brokers, name, end, err := c.startBroker(ctx, dir, logger)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	r := &run{Command: c, dir: dir, brokers: brokers}
	if r.files, err = localca.Ensure(dir, time.Now()); err != nil {
		return err
	}
	if r.hundred, r.hundredOTLP, err = newBodies(subject.EntriesPerBatch); err != nil {
		return err
	}
	if r.one, _, err = newBodies(1); err != nil {
		return err
	}
	if err := errors.Join(r.door(ctx), r.naive(ctx), r.collector(ctx)); err != nil {
		return err
	}
	return r.write(os.Stdout, name)
}

// startBroker starts Apache Kafka, or the embedded one where there is none.
func (c *Command) startBroker(ctx context.Context, dir string, logger *slog.Logger) (brokers []string, name string, end func() error, err error) {
	if !c.Embedded {
		kafka, err := apache.Start(ctx, apache.Config{Dir: filepath.Join(dir, "apache-kafka")})
		if err == nil {
			return []string{kafka.Addr()}, "Apache Kafka " + apache.Version, kafka.Stop, nil
		}
		if !errors.Is(err, apache.ErrMissing) {
			return nil, "", nil, err
		}
	}
	own, err := embedded.Start(embedded.Config{Dir: filepath.Join(dir, "kafka"), Open: true, Logger: logger})
	if err != nil {
		return nil, "", nil, err
	}
	return []string{own.Addr()}, "Embedded broker", own.Close, nil
}

// A run measures servers on one broker.
type run struct {
	*Command

	dir     string
	brokers []string
	files   localca.Files

	hundred, hundredOTLP, one [][]byte // bodies

	rows []row
}

// A row is what requests of a kind took.
type row struct {
	name      string
	perSecond float64
	cpu       time.Duration // of the server, of a request
	answers   []time.Duration
}

// A kind of request.
type kind struct {
	name      string
	path      string
	key       string
	media     string
	bodies    [][]byte
	status    int
	perSecond float64 // 0: as many as are answered
}

// halfOfFull is a rate.
const halfOfFull = -1

const (
	ours       = "application/json"
	protobuf   = "application/x-protobuf"
	full       = "100 entries"
	half       = "100 entries, half as many a second"
	otlp       = "the same as OTLP"
	single     = "1 entry"
	refused    = "1 entry, quota exhausted: 429"
	byNaive    = "naive server: 100 entries"
	byExporter = "Collector: the same as OTLP"
)

// door measures the front door.
func (r *run) door(ctx context.Context) (err error) {
	server, address, err := measure.Again(ctx, r.dir, "door", benchmark.Front{
		Brokers: r.brokers, CertFile: r.files.Server, KeyFile: r.files.ServerKey, Key: key, Exhausted: exhausted, Profiles: r.Profiles,
		Proxies: []string{"127.0.0.1"},
	})
	if err != nil {
		return fmt.Errorf("front door: %w", err)
	}
	defer func() { err = errors.Join(err, stop(server)) }()
	for _, k := range []kind{
		{full, "/logs", key, ours, r.hundred, 200, 0}, {half, "/logs", key, ours, r.hundred, 200, halfOfFull},
		{otlp, "/otlp/v1/logs", key, protobuf, r.hundredOTLP, 200, 0}, {single, "/logs", key, ours, r.one, 200, 0},
		{refused, "/logs", exhausted, ours, r.one, 429, 0},
	} {
		if err := r.measure(ctx, server.Pid, "https://"+address+"/v1", k); err != nil {
			return err
		}
	}
	return nil
}

// naive measures the naive server.
func (r *run) naive(ctx context.Context) (err error) {
	server, address, err := naive.Start(ctx, naive.Task{Dir: r.dir, Brokers: r.brokers})
	if err != nil {
		return fmt.Errorf("naive server: %w", err)
	}
	defer func() { err = errors.Join(err, stop(server)) }()
	return r.measure(ctx, server.Pid, "https://"+address, kind{byNaive, "/logs", key, ours, r.hundred, 200, 0})
}

func stop(server *measure.Program) error {
	_, err := server.Stop()
	return err
}

// measure warms up, and sends requests of a kind to a server.
func (r *run) measure(ctx context.Context, pid int, base string, k kind) error {
	if !r.only.MatchString(k.name) {
		return nil
	}
	if subject.Say("  %s", k.name); k.perSecond == halfOfFull {
		k.perSecond = r.found(full).perSecond / 2
	}
	api, err := client.New(base, r.files.CA, senders)
	if err != nil {
		return err
	}
	defer api.Close()
	if _, err := r.send(ctx, api, k, r.Each/5, nil); err != nil {
		return err
	}
	var answers measure.Samples
	server := measure.CPU(measure.Process{Pid: pid})
	took, err := r.send(ctx, api, k, r.Each, &answers)
	n := float64(max(1, answers.Count()))
	r.rows = append(r.rows, row{k.name, n / took.Seconds(), server(n)[0], answers.Percentiles(50, 99)})
	return err
}

// found is the row of a kind.
func (r *run) found(name string) row {
	i := slices.IndexFunc(r.rows, func(one row) bool { return one.name == name })
	if i < 0 {
		return row{}
	}
	return r.rows[i]
}

func (r *run) send(ctx context.Context, api *client.Client, k kind, long time.Duration, answers *measure.Samples) (time.Duration, error) {
	load := measure.Load{Workers: senders, For: long, PerSecond: k.perSecond}
	next := make([]int, senders)
	return load.Run(ctx, func(ctx context.Context, worker int, due time.Time) error {
		next[worker]++
		body := k.bodies[(worker*bodies/senders+next[worker])%bodies]
		// Refusals of one address are answered slowly, so each request has its own.
		header := map[string]string{"x-api-key": k.key, "Content-Type": k.media, "X-Forwarded-For": address(worker, next[worker])}
		answer, err := api.Call(ctx, client.Request{Method: "POST", Path: k.path, Header: header, Body: body})
		if err == nil && answer.Status != k.status {
			err = fmt.Errorf("%s: %d %s", k.name, answer.Status, answer.Body)
		}
		if answers != nil {
			answers.Add(time.Since(due))
		}
		return err
	})
}

// address is one of 2^24 for each sender.
func address(sender, n int) string {
	return netip.AddrFrom4([4]byte{byte(16 + sender), byte(n >> 16), byte(n >> 8), byte(n)}).String() //nolint:gosec // its bytes
}

// What a sound front door achieves.
const (
	goalNaive     = 8.0 // times cheaper than the naive server
	goalHalf      = 1.3 // times the CPU at full load
	goalOTLP      = 1.3 // times the CPU of the same entries as JSON
	goalCollector = 3.0 // times cheaper than the Collector
	goalSingle    = 60 * time.Microsecond
	goalRefused   = 30 * time.Microsecond
)

func (r *run) write(out io.Writer, broker string) error {
	table := measure.NewTable(out, fmt.Sprintf("%s. Servers, broker and %d senders share the machine. %d entries are %d KB, %d KB as OTLP.",
		broker, senders, subject.EntriesPerBatch, len(r.hundred[0])>>10, len(r.hundredOTLP[0])>>10))
	table.Row("request", "a second", "CPU of the server", "answer p50 / p99")
	for _, row := range r.rows {
		table.Row(row.name, fmt.Sprintf("%.0f", row.perSecond), measure.Micros(row.cpu), measure.Millis(row.answers...))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	ratio := func(most float64, of, by string, format string) {
		if one, other := r.found(of).cpu, r.found(by).cpu; one > 0 && other > 0 {
			found := float64(one) / float64(other)
			fmt.Fprintln(out, measure.Goal(found <= most, format, most, found))
		}
	}
	ratio(1/goalNaive, full, byNaive, "100 entries cost at most %.3f of what they cost the naive server: %.3f")
	ratio(goalHalf, half, full, "at half load they cost at most %g times that of full load: %.2f")
	ratio(goalOTLP, otlp, full, "as OTLP they cost at most %g times that: %.2f")
	ratio(1/goalCollector, otlp, byExporter, "and at most %.2f of what they cost the Collector: %.2f")
	for of, most := range map[string]time.Duration{single: goalSingle, refused: goalRefused} {
		if took := r.found(of).cpu; took > 0 {
			fmt.Fprintln(out, measure.Goal(took < most, "%s costs less than %s: %s", of, most, took))
		}
	}
	return nil
}
