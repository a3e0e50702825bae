package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/weirlog/weir/shared/testenv"
)

func main() {
	backend := flag.String("backend", "machine", "what to start: machine (PostgreSQL here, embedded brokers in the tests) or "+
		"kafka (PostgreSQL and Apache Kafka, in containers if an engine has both images or can pull them, else on this machine)")
	measure := flag.Bool("measure", false, "for measurements: an Apache Kafka that is as fast as it can be, and takes more of the processor until it is")
	count := flag.Int("slowest", 0, "print at the end so many packages, of those that the command tests, which took longest")
	flag.Parse()
	packages := &slowest{took: map[string]time.Duration{}}
	code, err := run(*backend, *measure, packages, flag.Args())
	packages.print(os.Stdout, *count)
	if err != nil {
		fmt.Fprintln(os.Stderr, "backends:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(backend string, measure bool, output io.Writer, command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("no command to run: backends [-backend …] -- command")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	set, err := start(ctx, backend, measure)
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
	if s.database != "" {
		env = append(env, testenv.EnvDatabase+"="+s.database)
	}
	if s.brokers != "" {
		env = append(env, testenv.EnvBrokers+"="+s.brokers)
	}
	return env
}
