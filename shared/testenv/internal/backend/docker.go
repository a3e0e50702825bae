package backend

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
)

// A Container is one of the test's own, controlled by the command
// docker: a test with faults does not need the library that starts the
// containers of a whole run.
type Container struct {
	id     string
	answer func(context.Context) error
}

// RunContainer starts a container whose port is published at one of this machine.
func RunContainer(image string, inside, port int, env map[string]string, answer func(context.Context) error) (*Container, error) {
	line := []string{"run", "--detach", "--publish", fmt.Sprintf("127.0.0.1:%d:%d", port, inside)}
	for name, value := range env {
		line = append(line, "--env", name+"="+value)
	}
	id, err := docker(append(line, image)...)
	if err != nil {
		return nil, err
	}
	c := &Container{id, answer}
	if err := c.await(); err != nil {
		return nil, errors.Join(err, c.Remove())
	}
	return c, nil
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

func (c *Container) await() error {
	ctx, cancel := context.WithTimeout(context.Background(), StartTime)
	defer cancel()
	return Retry(ctx, func() error {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		return c.answer(ctx)
	})
}

func (c *Container) do(what string) error {
	_, err := docker(what, c.id)
	return err
}

// Pause retries: freezing a busy container's threads one by one, as control
// groups of version 1 do, may fail (github.com/opencontainers/runc/pull/2791),
// and then leaves all of them running.
func (c *Container) Pause() error {
	ctx, cancel := context.WithTimeout(context.Background(), StartTime)
	defer cancel()
	return Retry(ctx, func() error { return c.do("pause") })
}

// Resume continues all its threads.
func (c *Container) Resume() error { return c.do("unpause") }

// Kill sends SIGKILL.
func (c *Container) Kill() error { return c.do("kill") }

// Start starts the dead container and returns when it answers.
func (c *Container) Start() error { return errors.Join(c.do("start"), c.await()) }

// Restart is Kill and Start.
func (c *Container) Restart() error { return errors.Join(c.Kill(), c.Start()) }

// Remove ends the container and removes its data.
func (c *Container) Remove() error {
	_, err := docker("rm", "--force", "--volumes", c.id)
	return err
}

// RemoveAtEnd is Remove when the test ends.
func (c *Container) RemoveAtEnd(t testing.TB) {
	t.Cleanup(func() {
		if err := c.Remove(); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
}

// PostgresImage is the image of PostgreSQL's containers.
func PostgresImage() string { return cmp.Or(os.Getenv("WEIR_TEST_POSTGRES_IMAGE"), "postgres:17") }
