package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/apache"
	"github.com/weirlog/weir/shared/testenv/containers"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

func main() {
	backend := flag.String("backend", "machine", "what to start: machine (PostgreSQL here, embedded brokers in the tests) or "+
		"kafka (PostgreSQL and Apache Kafka, in containers if an engine has both images or can pull them, else on this machine)")
	measure := flag.Bool("measure", false, "for measurements: an Apache Kafka that is as fast as it can be, and takes more of the processor until it is")
	disk := flag.Bool("disk", false, "leave the command's temporary files on the disk; else they are in memory, if there is room, and removed at the end")
	count := flag.Int("slowest", 0, "print at the end so many packages, of those that the command tests, which took longest")
	flag.Parse()
	packages := &slowest{took: map[string]time.Duration{}}
	code, err := run(config{*backend, *measure, *disk || *measure}, packages, flag.Args())
	packages.print(os.Stdout, *count)
	if err != nil {
		fmt.Fprintln(os.Stderr, "backends:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// config is what the flags say.
type config struct {
	backend string
	measure bool // what is started is measured, and not only used
	disk    bool // temporary files are on it
}

func run(config config, output io.Writer, command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("no command to run: backends [-backend …] -- command")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set, err := start(ctx, config)
	defer func() { err = errors.Join(err, set.stop()) }()
	if err != nil {
		return 1, err
	}
	return execute(ctx, command, output, set)
}

// leftBehind bounds the wait for output of a process that the command
// started and did not end.
const leftBehind = 10 * time.Second

// execute runs the command. When this process is asked to end, it asks
// the command, which may take its time.
func execute(ctx context.Context, command []string, output io.Writer, set *set) (int, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, io.MultiWriter(os.Stdout, output), os.Stderr
	cmd.WaitDelay = leftBehind
	cmd.Env = append(os.Environ(), set.environment()...)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("cannot run %q: %w", command[0], err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err := cmd.Wait()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return max(failed.ExitCode(), 1), ctx.Err()
	}
	if err != nil {
		return 1, fmt.Errorf("%q: %w", command[0], err)
	}
	return 0, nil
}

// environment returns the variables that testenv reads.
func (s *set) environment() []string {
	env := []string{testenv.EnvBackend + "=" + s.backend}
	if s.folder != "" {
		env = append(env, "TMPDIR="+s.folder, "GOTMPDIR="+cmp.Or(os.Getenv("GOTMPDIR"), os.TempDir())) // what is linked stays on the disk
	}
	if s.database != "" {
		env = append(env, testenv.EnvDatabase+"="+s.database)
	}
	if s.brokers != "" {
		env = append(env, testenv.EnvBrokers+"="+s.brokers)
	}
	return env
}

// A set is what was started for a run.
type set struct {
	database string // URL of a role that may create databases; "" leaves it to each package
	brokers  string // host:port; "" leaves it to each test
	backend  string // machine, kafka, or containers, which kafka becomes where there are some
	measure  bool   // what is started is measured, and not only used
	folder   string // of temporary files, in memory; "": the usual one
	stops    []func() error
}

// stop stops everything, in reverse order.
func (s *set) stop() error {
	var errs []error
	for _, stop := range slices.Backward(s.stops) {
		errs = append(errs, stop())
	}
	return errors.Join(errs...)
}

func (s *set) onStop(stop func() error) { s.stops = append(s.stops, stop) }

// start starts a backend. On an error the set has what was started.
func start(ctx context.Context, config config) (*set, error) {
	s := &set{database: os.Getenv(testenv.EnvDatabase), brokers: os.Getenv(testenv.EnvBrokers), backend: config.backend, measure: config.measure}
	if err := s.makeFolder(config.disk); err != nil {
		return s, err
	}
	switch s.backend {
	case "machine":
		return s, errors.Join(s.startDatabase(ctx, s.localDatabase), s.startBroker(ctx, leaveKafkaToTests))
	case "kafka":
		if why := inContainers(ctx); why != nil {
			fmt.Printf("backends: not in containers: %v\n", why)
			return s, errors.Join(s.startDatabase(ctx, s.localDatabase), s.startBroker(ctx, s.jarsKafka))
		}
		s.backend = "containers"
		return s, errors.Join(s.startDatabase(ctx, s.containerDatabase), s.startBroker(ctx, s.containerKafka))
	}
	return s, fmt.Errorf("there is no backend %q: machine or kafka", s.backend)
}

// makeFolder makes the folder of temporary files, unless the caller has named one. Programs run
// in it, which a container's memory may not allow.
func (s *set) makeFolder(disk bool) error {
	if disk || os.Getenv("TMPDIR") != "" || !testenv.InMemory() {
		return nil
	}
	folder, err := testenv.Scratch("weir-test-")
	if err != nil {
		return err
	}
	s.onStop(func() error {
		_ = os.RemoveAll(folder) // what a killed test has left may still write to it
		return nil
	})
	const noExec = 8 // as mount says
	var on syscall.Statfs_t
	if err := syscall.Statfs(folder, &on); err != nil || on.Flags&noExec != 0 {
		return err
	}
	s.folder = folder
	return os.Chmod(folder, 0o755) // servers run as other users
}

// inContainers returns nil where an engine has both images or can pull them.
func inContainers(ctx context.Context) error {
	if err := containers.Provides(ctx, backend.PostgresImage()); err != nil {
		return err
	}
	return containers.Provides(ctx, apache.Image())
}

func say(what, where string) { fmt.Printf("backends: %s: %s\n", what, where) }

func (s *set) startDatabase(ctx context.Context, start func(context.Context) error) error {
	if s.database != "" {
		say("PostgreSQL", "given by "+testenv.EnvDatabase)
		return nil
	}
	if err := start(ctx); err != nil {
		return fmt.Errorf("no PostgreSQL: %w", err)
	}
	return nil
}

func (s *set) startBroker(ctx context.Context, start func(context.Context) error) error {
	if s.brokers != "" {
		say("Kafka", "given by "+testenv.EnvBrokers)
		return nil
	}
	if err := start(ctx); err != nil {
		return fmt.Errorf("no Apache Kafka: %w", err)
	}
	return nil
}

// leaveKafkaToTests starts nothing: an embedded broker starts so fast
// that each test has its own.
func leaveKafkaToTests(context.Context) error {
	say("Kafka", "embedded broker, one for each test")
	return nil
}

func (s *set) localDatabase(ctx context.Context) error {
	server, err := postgrestest.Start(ctx)
	if err != nil {
		return err
	}
	s.onStop(func() error { return server.Stop(context.WithoutCancel(ctx)) })
	s.database = server.AdminURL()
	say("PostgreSQL", "local server, binaries in "+server.Binaries())
	return nil
}

func (s *set) jarsKafka(ctx context.Context) error {
	place := testenv.Scratch
	if s.measure {
		place = onDisk
	}
	dir, err := place("weir-test-kafka-")
	if err != nil {
		return err
	}
	broker, err := apache.Start(ctx, apache.Config{Dir: dir, Brief: !s.measure})
	if err != nil {
		return err
	}
	s.onStop(broker.Stop)
	s.brokers = broker.Addr()
	say("Kafka", "Apache Kafka "+apache.Version+" from its jars, at "+broker.Addr())
	return nil
}

// onDisk is for measurements: the data of a broker in production is on a disk.
func onDisk(pattern string) (string, error) { return os.MkdirTemp("", pattern) }

func (s *set) containerDatabase(ctx context.Context) error {
	c, err := containers.Postgres(ctx, backend.PostgresImage(), testenv.InMemory())
	if err != nil {
		return err
	}
	s.onStop(c.Stop)
	s.database = c.Address
	say("PostgreSQL", "container of "+backend.PostgresImage())
	return nil
}

func (s *set) containerKafka(ctx context.Context) error {
	c, err := containers.Kafka(ctx, apache.Image())
	if err != nil {
		return err
	}
	s.onStop(c.Stop)
	s.brokers = c.Address
	say("Kafka", "container of "+apache.Image()+" at "+c.Address)
	return nil
}

// slowest reads the output of `go test`, and adds up the time of each package.
type slowest struct {
	line []byte // begun and not ended yet
	took map[string]time.Duration
}

func (s *slowest) Write(p []byte) (int, error) {
	s.line = append(s.line, p...)
	for {
		line, rest, ended := bytes.Cut(s.line, []byte("\n"))
		if !ended {
			return len(p), nil
		}
		s.note(string(line))
		s.line = rest
	}
}

// note reads "ok" or FAIL, a package and its time, separated by tabs.
// Cached results took no time.
func (s *slowest) note(line string) {
	columns := strings.Split(line, "\t")
	if len(columns) < 3 || strings.TrimSpace(columns[0]) != "ok" && columns[0] != "FAIL" {
		return
	}
	text, _, _ := strings.Cut(columns[2], " ") // coverage or a remark may follow
	if took, err := time.ParseDuration(text); err == nil {
		s.took[columns[1]] += took
	}
}

// print lists the count slowest packages.
func (s *slowest) print(out io.Writer, count int) {
	names := slices.SortedFunc(maps.Keys(s.took), func(a, b string) int { return cmp.Compare(s.took[b], s.took[a]) })
	names = names[:min(count, len(names))]
	if len(names) == 0 {
		return
	}
	fmt.Fprintln(out, "slowest packages:")
	for _, name := range names {
		fmt.Fprintf(out, "%8.1f s  %s\n", s.took[name].Seconds(), name)
	}
}
