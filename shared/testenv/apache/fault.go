package apache

import (
	"context"
	"errors"
	"os"
	"syscall"

	"github.com/weirlog/weir/shared/testenv/fault"
)

// Faults of a node's process. Each returns when it is done.

// Pause stops the process (SIGSTOP).
func (b *Broker) Pause() error { return fault.Stop(b.Pid()) }

// Resume continues it.
func (b *Broker) Resume() error { return syscall.Kill(b.Pid(), syscall.SIGCONT) }

// Kill sends SIGKILL. The folder stays.
func (b *Broker) Kill() error {
	pid := b.Pid()
	if pid == 0 {
		return errors.New("the node does not run")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return err
	}
	<-b.done
	b.pipe.Close()
	return nil
}

// Start starts a killed node with its data, and returns when it answers.
func (b *Broker) Start() error {
	if err := b.launch(); err != nil {
		return err
	}
	return b.await(context.Background(), 1)
}

// Replace starts a node without data under the id of a killed one, and
// returns when it answers.
func (b *Broker) Replace() error {
	if err := os.RemoveAll(b.file("data")); err != nil {
		return err
	}
	if err := b.format(context.Background()); err != nil {
		return err
	}
	return b.Start()
}

// Restart kills the node and starts it.
func (b *Broker) Restart() error { return errors.Join(b.Kill(), b.Start()) }
