package measure

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A Program is one that is measured, or puts load on one. What it
// writes is in files.
type Program struct {
	Pid    int
	said   string // file of its standard output
	failed string // and of its errors
	stop   context.CancelFunc
	ended  chan error
}

// stopTimeout limits an orderly stop.
const stopTimeout = time.Minute

// Again starts this program with another command, which reads its task from
// standard input and says in a line when it is ready. That line is returned.
func Again(ctx context.Context, dir, command string, task any) (p *Program, line string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	if p, err = Start(dir, self, command, task, nil); err != nil {
		return nil, "", err
	}
	err = p.Await(ctx, func(context.Context) (ready bool, err error) {
		var said []byte
		said, err = os.ReadFile(p.said)
		said, _, ready = bytes.Cut(said, []byte("\n"))
		line = string(said)
		return ready, err
	})
	return p, line, err
}

// Start starts a program with a command, a task on its standard input, and
// further variables.
func Start(dir, program, command string, task any, variables map[string]string) (p *Program, err error) {
	name := filepath.Join(dir, fmt.Sprintf("%s-%d", filepath.Base(program), time.Now().UnixNano()))
	p = &Program{said: name + ".out", failed: name + ".err", ended: make(chan error, 1)}
	text, unfit := json.Marshal(task)
	said, noOutput := os.Create(p.said)
	failed, noErrors := os.Create(p.failed)
	if err := errors.Join(unfit, noOutput, noErrors); err != nil {
		return nil, err
	}
	defer said.Close() // the process has its own
	defer failed.Close()
	ctx, stop := context.WithCancel(context.Background())
	run := exec.CommandContext(ctx, program, command)
	run.Stdin, run.Stdout, run.Stderr = bytes.NewReader(text), said, failed
	run.Env = os.Environ()
	for name, value := range variables {
		run.Env = append(run.Env, name+"="+value)
	}
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is ours to handle
	run.Cancel = func() error { return run.Process.Signal(syscall.SIGTERM) }
	run.WaitDelay = stopTimeout
	if err := run.Start(); err != nil {
		stop()
		return nil, err
	}
	p.Pid, p.stop = run.Process.Pid, stop
	go func() { p.ended <- run.Wait() }()
	return p, nil
}

// Await waits until the process is ready; otherwise it stops it.
func (p *Program) Await(ctx context.Context, ready func(ctx context.Context) (bool, error)) error {
	const timeout, pause = 3 * time.Minute, 20 * time.Millisecond
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := Until(limited, pause, func(ctx context.Context) (bool, error) {
		select {
		case err := <-p.ended:
			p.ended <- cmp.Or(err, errors.New("it ended before it was ready"))
			return false, errors.New("not ready")
		default:
			return ready(ctx)
		}
	})
	if err != nil {
		_, stopped := p.Stop()
		err = errors.Join(err, stopped)
	}
	return err
}

// Stop ends the process in order, and returns what it has said since it was
// ready; otherwise the error has all that it wrote.
func (p *Program) Stop() (said []byte, err error) {
	p.stop()
	if err = <-p.ended; errors.Is(err, context.Canceled) {
		err = nil // it ended as it was told to
	}
	p.ended <- err
	all, unread := os.ReadFile(p.said)
	if err != nil {
		failed, _ := os.ReadFile(p.failed)
		err = fmt.Errorf("%w\n%s%s", err, all, failed)
	}
	_, said, _ = bytes.Cut(all, []byte("\n"))
	return said, errors.Join(err, unread)
}
