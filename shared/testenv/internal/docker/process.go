package docker

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/testenv/internal/backend"
)

// A Process is a container of the test's own, controlled by the command
// docker: a test with faults does not need the library that starts the
// containers of a whole run.
type Process struct {
	id     string
	answer func(context.Context) error
}

// Run starts a container whose port is published at one of this machine.
func Run(image string, inside, port int, env map[string]string, answer func(context.Context) error) (*Process, error) {
	line := []string{"run", "--detach", "--publish", fmt.Sprintf("127.0.0.1:%d:%d", port, inside)}
	for name, value := range env {
		line = append(line, "--env", name+"="+value)
	}
	id, err := docker(append(line, image)...)
	if err != nil {
		return nil, err
	}
	p := &Process{id, answer}
	if err := p.await(); err != nil {
		return nil, errors.Join(err, p.Remove())
	}
	return p, nil
}

func docker(args ...string) (string, error) {
	var out, complaints bytes.Buffer
	cmd := exec.Command("docker", args...)
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, bytes.TrimSpace(complaints.Bytes()))
	}
	return strings.TrimSpace(out.String()), nil
}

func (p *Process) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), backend.StartTime)
	defer cancel()
	return backend.Retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return p.answer(ctx)
	})
}

func (p *Process) do(what string) error {
	_, err := docker(what, p.id)
	return err
}

// Pause retries: freezing a busy container's threads one by one, as control
// groups of version 1 do, may fail (github.com/opencontainers/runc/pull/2791),
// and then leaves all of them running.
func (p *Process) Pause() error {
	ctx, cancel := context.WithTimeout(context.Background(), backend.StartTime)
	defer cancel()
	return backend.Retry(ctx, func() error { return p.do("pause") })
}

// Resume continues all its threads.
func (p *Process) Resume() error { return p.do("unpause") }

// Kill sends SIGKILL.
func (p *Process) Kill() error { return p.do("kill") }

// Start starts the dead container and returns when it answers.
func (p *Process) Start() error { return errors.Join(p.do("start"), p.await()) }

// Restart is Kill and Start.
func (p *Process) Restart() error { return errors.Join(p.Kill(), p.Start()) }

// Remove ends the container and removes its data.
func (p *Process) Remove() error {
	_, err := docker("rm", "--force", "--volumes", p.id)
	return err
}

// RemoveAtEnd is Remove when the test ends.
func (p *Process) RemoveAtEnd(t testing.TB) {
	t.Cleanup(func() {
		if err := p.Remove(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
}

// PostgresImage is the image of PostgreSQL's containers.
func PostgresImage() string { return cmp.Or(os.Getenv("WEIR_TEST_POSTGRES_IMAGE"), "postgres:17") }
