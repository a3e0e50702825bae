package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/filelock"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/internal/serve"
	"github.com/weirlog/weir/shared/testenv/port"
)

// URL gives the test an empty database of its own on a Redis
// or Valkey server and returns its address,
// redis://host:port/number. It is emptied when the test begins.
//
// A server from WEIR_TEST_REDIS_URL is for tests only: each of its sixteen
// databases is lent to one test at a time, of any package.
func URL(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(testenv.EnvRedis); given != "" {
		backend.Announce("Redis", "given by "+testenv.EnvRedis)
		return lend(t, given)
	}
	local, err := localServer()
	if err != nil {
		t.Fatalf("testenv: no Redis for the tests: %v", err)
	}
	backend.Announce("Redis", local.what)
	return lend(t, local.url)
}

// A server on this machine.
type server struct {
	*fault.Command
	url  string
	what string // for people
}

// localServer is this package's own server; it ends with the process.
var localServer = sync.OnceValues(start)

// programs are the supported servers, by preference.
var programs = []string{"valkey-server", "redis-server"}

// find returns the machine's server, if it has one.
func find() (string, bool) {
	for _, name := range programs {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

func start() (*server, error) {
	dir, err := os.MkdirTemp("", "weir-test-redis-")
	if err != nil {
		return nil, err
	}
	port, err := port.Free()
	if err != nil {
		return nil, err
	}
	s := &server{url: "redis://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	if program, found := find(); found {
		line := append([]string{program, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir}, durable...)
		s.Command, s.what = &fault.Command{Line: line}, "local server "+program
	} else {
		s.what = "of a Go module (miniredis), in a process of its own: neither " + strings.Join(programs, " nor ") + " is on PATH"
		s.Command, err = serve.Command(aRedis, dir, port)
	}
	if err != nil {
		return nil, err
	}
	s.Dir, s.Answer = dir, func(ctx context.Context) error { return ping(ctx, s.url) }
	return s, s.Start()
}

// databases is a server's default number of databases.
const databases = 16

// lend takes a database that no test has, in this process or another;
// the kernel releases it with its process.
func lend(t testing.TB, server string) string {
	t.Helper()
	var lent string
	testenv.Eventually(t, backend.StartTime, func() error {
		for n := range databases {
			u, err := withDatabase(server, n)
			if err != nil {
				return err
			}
			if file, err := filelock.Try(filelock.Path(u)); err == nil {
				t.Cleanup(func() { _ = file.Close() }) // releases it in any case
				lent = u
				return nil
			}
		}
		return fmt.Errorf("other tests hold all %d databases", databases)
	})
	if _, err := Command(t.Context(), lent, "FLUSHDB"); err != nil {
		t.Fatalf("testenv: the test Redis does not answer: %v", err)
	}
	return lent
}

func withDatabase(server string, n int) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New(testenv.EnvRedis + " is not a URL: redis://[user:password@]host:port")
	}
	u.Path = "/" + strconv.Itoa(n)
	return u.String(), nil
}
