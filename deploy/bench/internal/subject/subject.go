package subject

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv/measure"
)

// Database is the PostgreSQL to measure with.
type Database struct {
	DatabaseURL httpapi.Secret `help:"Empty Postgres database to measure with. Without it one is started." env:"WEIR_BENCH_DATABASE_URL"`
}

// Open makes an empty directory for the files of a measurement, and starts a
// server there that flushes to disk as in production, and measures statements
// if it can; not where a database is given. Closing stops the server, then
// removes the directory.
func (d Database) Open(ctx context.Context, logger *slog.Logger) (dir, url string, closeAll func() error, err error) {
	if dir, err = os.MkdirTemp("", "weir-bench-"); err != nil {
		return "", "", nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL may run as another user
		return "", "", nil, errors.Join(err, remove())
	}
	if url = d.DatabaseURL.Reveal(); url != "" {
		return dir, url, remove, nil
	}
	server, err := postgres.Start(ctx, postgres.Config{Dir: filepath.Join(dir, "postgres"), Logger: logger, CountStatements: true})
	if err != nil {
		return "", "", nil, errors.Join(err, remove())
	}
	return dir, server.URL(), func() error { return errors.Join(server.Stop(context.WithoutCancel(ctx)), remove()) }, nil
}

// Program is the program that is measured.
type Program struct {
	Weir string `help:"The program weir that is measured. Without it, the one beside this program." type:"existingfile"`
}

func (p Program) path() (string, error) {
	self, err := os.Executable()
	weir := cmp.Or(p.Weir, filepath.Join(filepath.Dir(self), "weir"))
	if _, missing := os.Stat(weir); err == nil && missing != nil {
		err = fmt.Errorf("there is no weir to measure: name it with --weir: %w", missing)
	}
	return weir, err
}

// A Subject is the measured process.
type Subject struct {
	command *exec.Cmd
	output  bytes.Buffer
	ended   chan error
	Env     allinone.DevEnv
}

// Limits of the subject's start and stop.
const (
	startTimeout = 90 * time.Second
	stopTimeout  = 30 * time.Second
	poll         = 20 * time.Millisecond
)

// Start runs `weir run` and waits until it is ready.
func (p Program) Start(ctx context.Context, dir string, variables map[string]string) (*Subject, error) {
	weir, err := p.path()
	if err != nil {
		return nil, err
	}
	s := &Subject{command: exec.Command(weir, "run"), ended: make(chan error, 1)}
	s.command.Env = append(os.Environ(), "WEIR_LISTEN=127.0.0.1:0", "WEIR_DATA_DIR="+dir)
	for name, value := range variables {
		s.command.Env = append(s.command.Env, name+"="+value)
	}
	s.command.Stdout, s.command.Stderr = &s.output, &s.output
	s.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is ours to handle
	if err := s.command.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the measured process: %w", err)
	}
	go func() { s.ended <- s.command.Wait() }()
	if err := s.awaitReady(ctx, filepath.Join(dir, allinone.EnvFile)); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// awaitReady waits until the process serves and has its demo organization.
func (s *Subject) awaitReady(ctx context.Context, envFile string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err := measure.Until(ctx, poll, func(ctx context.Context) (ready bool, err error) {
		select {
		case err := <-s.ended:
			s.ended <- err
			return false, fmt.Errorf("the measured process ended instead of serving: %s\n%w", s.output.Bytes(), cmp.Or(err, errors.New("without an error")))
		default:
		}
		s.Env, err = allinone.ReadDevEnv(envFile)
		return err == nil && s.Env.ConsolePassword != "" && s.serves(ctx), nil
	})
	if ctx.Err() != nil {
		return fmt.Errorf("the measured process is not ready: %w", ctx.Err())
	}
	return err
}

// serves reports whether the process answers at the address in its
// file, which may be an earlier run's.
func (s *Subject) serves(ctx context.Context) bool {
	api, err := s.Client(1)
	if err != nil {
		return false
	}
	defer api.Close()
	return api.Ready(ctx) == nil
}

// Pid returns the process id.
func (s *Subject) Pid() int { return s.command.Process.Pid }

// Client returns a client of the public API.
func (s *Subject) Client(connections int) (*client.Client, error) {
	return client.New(s.Env.BaseURL, s.Env.CAFile, connections)
}

// Stop ends the process in order; otherwise its error has the process's output.
func (s *Subject) Stop() error {
	_ = s.command.Process.Signal(syscall.SIGTERM)
	select {
	case err := <-s.ended:
		s.ended <- err
		if err != nil {
			return fmt.Errorf("the measured process did not stop in order: %w\n%s", err, s.output.Bytes())
		}
		return nil
	case <-time.After(stopTimeout):
		_ = s.command.Process.Kill()
		return fmt.Errorf("the measured process still ran %s after SIGTERM", stopTimeout)
	}
}
