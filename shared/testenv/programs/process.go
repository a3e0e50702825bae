package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/filelock"
	"github.com/weirlog/weir/shared/testenv"
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
	testenv.Must(t, p.command.Start())
	guard, err := watch(`read -r _ || kill -KILL "$1"`, strconv.Itoa(p.ID()))
	testenv.Must(t, err)
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

// Build returns the path of a program, which is alone in its folder. Its main
// package is named by the path from the root of the repository: ledger/cmd/ledger.
func Build(t testing.TB, main string) string {
	t.Helper()
	once, _ := built.LoadOrStore(main, sync.OnceValues(func() (string, error) { return build(main) }))
	program, err := once.(func() (string, error))()
	if err != nil {
		t.Fatalf("testenv: cannot build %s: %v", main, err)
	}
	return program
}

// built are the programs of this process, by main package.
var built sync.Map

// build leaves the program where the next run finds it: the same one is not
// linked again, which takes a second. So it does not name the commit either.
func build(main string) (program string, err error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "bin", "test", main)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	turn, err := filelock.Take(folder + ".lock") // tests of other packages may build it too
	if err != nil {
		return "", err
	}
	defer turn.Close()
	program = filepath.Join(folder, filepath.Base(main))
	module, rest, _ := strings.Cut(main, "/")
	command := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s", "-o", program, "./"+rest)
	command.Dir = filepath.Join(root, module)
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return program, nil
}

// repository returns its root, above the tested package.
func repository() (string, error) {
	folder, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", errors.New("no go.work above: run the tests in a clone of the repository")
		}
		folder = parent
	}
	return "", err
}

// A guard is a shell that acts once this process has ended in any way: the
// kernel then closes the pipe that the shell reads from.
type guard struct {
	shell *exec.Cmd
	pipe  io.WriteCloser
}

// watch starts a guard. Its script waits with read, which fails at that end.
func watch(script string, args ...string) (*guard, error) {
	shell := exec.Command("/bin/sh", append([]string{"-c", script, "weir-test-guard"}, args...)...)
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // what ends the test's process group must not end it
	pipe, err := shell.StdinPipe()
	if err != nil {
		return nil, err
	}
	return &guard{shell, pipe}, shell.Start()
}

// release ends it; a script that asks with read goes on as if all is well.
func (g *guard) release() error {
	_, err := io.WriteString(g.pipe, "\n")
	return errors.Join(err, g.pipe.Close(), g.shell.Wait())
}

// AtEnd runs a shell script with arguments once the test has ended, or its
// process in any way, such as by SIGKILL.
func AtEnd(t testing.TB, script string, args ...string) {
	t.Helper()
	g, err := watch("read -r _\n"+script, args...)
	testenv.Must(t, err)
	t.Cleanup(func() {
		if err := g.release(); err != nil {
			t.Errorf("what cleans up behind the test: %v", err)
		}
	})
}
