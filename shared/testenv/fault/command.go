package fault

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// A Command is a Process started by a command. It always ends
// with this process.
type Command struct {
	Line   []string // program and arguments, the same at each start
	Env    []string // added to that of this process
	Dir    string   // its folder, with server.log; removed with it when this process ends
	Answer func(context.Context) error

	cmd   *exec.Cmd
	guard *exec.Cmd
	held  io.Closer
	ended chan struct{}
}

// startTime bounds how long a server may take until it answers.
const startTime = time.Minute

// guardScript waits for the end of its input, which the kernel closes
// with the process that holds it open.
const guardScript = `cat >/dev/null; kill -KILL "$1"; rm -rf "$2"`

func (c *Command) log() string { return filepath.Join(c.Dir, "server.log") }

// Start runs the command and returns when the server answers.
func (c *Command) Start() error {
	log, err := os.OpenFile(c.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	c.cmd = exec.Command(c.Line[0], c.Line[1:]...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = append(os.Environ(), c.Env...), log, log
	if err := c.cmd.Start(); err != nil {
		return err
	}
	c.watch()
	if err := c.protect(); err != nil {
		return errors.Join(err, c.Kill())
	}
	return c.await()
}

// watch notes when the process ends.
func (c *Command) watch() {
	cmd, ended := c.cmd, make(chan struct{})
	c.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the log has more than the exit code
	}()
}

func (c *Command) protect() (err error) {
	c.guard = exec.Command("/bin/sh", "-c", guardScript, "weir-test-guard", strconv.Itoa(c.cmd.Process.Pid), c.Dir)
	c.guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C does not reach it before this process ends
	if c.held, err = c.guard.StdinPipe(); err != nil {
		return err
	}
	return c.guard.Start()
}

func (c *Command) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := c.Answer(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return fmt.Errorf("it ended at its start: %s", c.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("no answer within %s: %w: %s", startTime, err, c.LogTail())
		case <-ticker.C:
		}
	}
}

// logTail is the size of LogTail.
const logTail = 8 << 10

// LogTail is the end of the server's log.
func (c *Command) LogTail() string {
	raw, err := os.ReadFile(c.log())
	if err != nil {
		return err.Error()
	}
	return string(raw[max(0, len(raw)-logTail):])
}

// Pause stops the process (SIGSTOP).
func (c *Command) Pause() error { return Stop(c.cmd.Process.Pid) }

// Resume lets it go on.
func (c *Command) Resume() error { return c.cmd.Process.Signal(syscall.SIGCONT) }

// Kill sends SIGKILL.
func (c *Command) Kill() error {
	if c.guard != nil && c.guard.Process != nil {
		_ = c.guard.Process.Kill() // before the process is gone: it must not kill another one of the same number
		_ = c.guard.Wait()
		c.held.Close()
		c.guard = nil
	}
	err := c.cmd.Process.Kill()
	<-c.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Restart kills the process and starts it.
func (c *Command) Restart() error { return errors.Join(c.Kill(), c.Start()) }
