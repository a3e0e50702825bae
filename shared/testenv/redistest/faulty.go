package redistest

import (
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/internal/docker"
)

// A Cache is a database of the test's own on a server with faults.
type Cache struct {
	*fault.Server
	URL string // through the network
}

// Faulty gives the test a database of its own as URL does, on a server
// that no test without faults uses. If WEIR_TEST_REDIS_URL names the
// server, only the network before it can have faults.
//
// All faults are healed when the test ends. Tests with faults take
// turns, parallel or not: one that also needs a shared server asks for
// it after this.
func Faulty(t testing.TB) *Cache {
	t.Helper()
	fault.Turn(t)
	direct, process, where, err := serverForFaults(t)
	if err != nil {
		t.Fatalf("testenv: no Redis that faults can be done to: %v", err)
	}
	backend.Announce("Redis for faults", where)
	server, url := fault.Before(t, "Redis", direct, process)
	return &Cache{server, url}
}

// faultyServer is this package's second server: its faults must not
// affect tests without faults.
var faultyServer = sync.OnceValues(start)

// serverForFaults returns the URL of a test's database on a server for faults.
func serverForFaults(t testing.TB) (url string, process fault.Process, where string, err error) {
	t.Helper()
	if url := backend.Given(testenv.EnvRedis); url != "" {
		return lend(t, url), fault.Given(testenv.EnvRedis), "given by " + testenv.EnvRedis, nil
	}
	if backend.Chosen() == "containers" {
		url, process, err := inContainer(t)
		return url, process, "container of " + docker.RedisImage(), err
	}
	server, err := faultyServer()
	if err != nil {
		return "", nil, "", err
	}
	return lend(t, server.url), server.Command, server.what, nil
}
