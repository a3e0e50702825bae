package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/port"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A process is a running program of the test. Its output is shown if
// the test fails.
type process struct {
	command *exec.Cmd
	output  *output
	ended   chan error
}

// output keeps a process's output.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// launch starts a program with further variables. It gets none of the
// test's own WEIR_ variables.
func launch(t *testing.T, program string, variables map[string]string, args ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(program, args...), output: &output{}, ended: make(chan error, 1)}
	p.command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	for name, value := range variables {
		p.command.Env = append(p.command.Env, name+"="+value)
	}
	p.command.Stdout, p.command.Stderr = p.output, p.output
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.ended <- p.command.Wait() }()
	t.Cleanup(p.kill)
	return p
}

// kill kills the process; one that has ended stays so.
func (p *process) kill() {
	_ = p.command.Process.Kill()
	_ = p.wait()
}

// wait returns the result of a process that ends by itself.
func (p *process) wait() error {
	err := <-p.ended
	p.ended <- err
	return err
}

// hasEnded reports whether the process has ended.
func (p *process) hasEnded() bool {
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

// stop asks the process to end and returns its result.
func (p *process) stop() error {
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case err := <-p.ended:
		p.ended <- err
		return err
	case <-time.After(stopTimeout):
		p.kill()
		return fmt.Errorf("still running %s after SIGTERM", stopTimeout)
	}
}

// awaitReady waits until the installation is ready, or the process has ended.
func (p *process) awaitReady(ctx context.Context, in installation, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := in.api.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s: %w", timeout, err)
		case ended := <-p.ended:
			p.ended <- ended
			return fmt.Errorf("ended instead of serving: %w", orNothing(ended))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func freeAddress(t *testing.T) string {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("127.0.0.1:%d", free)
}

// backends returns testenv's backends, as variables of a process.
func backends(t *testing.T) map[string]string {
	t.Helper()
	brokers := ""
	for _, address := range kafkatest.Brokers(t) {
		brokers += "," + address
	}
	return map[string]string{
		"WEIR_DATABASE_URL": postgrestest.URL(t), "WEIR_BROKERS": brokers[1:],
		"WEIR_TIER_BOOTSTRAPPER_BYTES": fmt.Sprint(quotaBytes),
	}
}
