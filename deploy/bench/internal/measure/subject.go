package measure

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
)

// A Subject is the measured process: all of Weir in one.
type Subject struct {
	command *exec.Cmd
	output  bytes.Buffer
	ended   chan error
	Env     allinone.DevEnv
}

// Limits of the subject's start and stop.
const (
	subjectStart = 90 * time.Second
	subjectStop  = 30 * time.Second
	subjectPoll  = 50 * time.Millisecond
)

// StartSubject runs the program weir with `run`, and waits until it
// is ready.
func StartSubject(ctx context.Context, weir, dir string, variables map[string]string) (*Subject, error) {
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
func (s *Subject) awaitReady(ctx context.Context, envFile string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, subjectStart)
	defer cancel()
	for {
		if s.Env, err = allinone.ReadDevEnv(envFile); err == nil && s.Env.ConsolePassword != "" && s.serves(ctx) {
			return nil
		}
		select {
		case err := <-s.ended:
			s.ended <- err
			return fmt.Errorf("the measured process ended instead of serving: %s\n%w", s.output.Bytes(), cmp.Or(err, errors.New("without an error")))
		case <-ctx.Done():
			return fmt.Errorf("the measured process is not ready: %w", ctx.Err())
		case <-time.After(subjectPoll):
		}
	}
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
	case <-time.After(subjectStop):
		_ = s.command.Process.Kill()
		return fmt.Errorf("the measured process still ran %s after SIGTERM", subjectStop)
	}
}
