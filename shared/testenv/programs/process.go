package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Process is a running program of a test.
type Process struct {
	Output *Output // stdout and stderr

	command *exec.Cmd
	ended   chan error
}

// Output keeps a process's output.
type Output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Launch starts a program with further variables, and kills it when the
// test ends, or its process in any way. It gets none of the test's own WEIR_
// variables.
func Launch(t testing.TB, program string, variables map[string]string, args ...string) *Process {
	t.Helper()
	p := &Process{command: exec.Command(program, args...), Output: &Output{}, ended: make(chan error, 1)}
	p.command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for name, value := range variables {
		p.command.Env = append(p.command.Env, name+"="+value)
	}
	p.command.Stdout, p.command.Stderr = p.Output, p.Output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	guard, err := watch(`read -r _ || kill -KILL "$1"`, strconv.Itoa(p.ID()))
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		err := p.command.Wait()
		_ = guard.release() // nothing is left to kill
		p.ended <- err
	}()
	t.Cleanup(p.Kill)
	return p
}

// ID returns the id of the process.
func (p *Process) ID() int { return p.command.Process.Pid }

// Kill kills the process; one that has ended stays so.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	_ = p.Wait()
}

// Wait returns the result of a process that ends by itself.
func (p *Process) Wait() error {
	err := <-p.ended
	p.ended <- err
	return err
}

// HasEnded reports whether the process has ended.
func (p *Process) HasEnded() bool {
	select {
	case err := <-p.ended:
		p.ended <- err
		return true
	default:
		return false
	}
}

// stopTimeout limits an orderly stop.
const stopTimeout = 30 * time.Second

// Stop asks the process to end and returns its result.
func (p *Process) Stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-time.After(stopTimeout):
		p.Kill()
		return fmt.Errorf("still running %s after SIGTERM", stopTimeout)
	}
}

// AwaitReady waits until ready returns nil, or the process has ended.
func (p *Process) AwaitReady(ctx context.Context, ready func(context.Context) error, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s: %w", timeout, err)
		case ended := <-p.ended:
			p.ended <- ended
			if ended == nil {
				ended = errors.New("it ended in order")
			}
			return fmt.Errorf("ended instead of serving: %w", ended)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
