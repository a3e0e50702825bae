package redistest

import (
	"context"
	"fmt"
	"testing"

	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/docker"
	"github.com/weirlog/weir/shared/testenv/port"
)

// durable are Redis's arguments by which acknowledged writes survive a kill.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always", "--save", ""}

// inContainer returns the URL of a database of a Redis in a container.
func inContainer(t testing.TB) (string, fault.Process, error) {
	t.Helper()
	port, err := port.Free()
	if err != nil {
		return "", nil, err
	}
	url := fmt.Sprintf("redis://127.0.0.1:%d/0", port)
	answer := func(ctx context.Context) error { return ping(ctx, url) }
	p, err := docker.Run(docker.RedisImage(), 6379, port, nil, answer, durable...)
	if err != nil {
		return "", nil, err
	}
	p.RemoveAtEnd(t)
	return url, p, nil
}
