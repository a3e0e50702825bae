package testenv

import (
	"bufio"
	"cmp"
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

	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/filelock"
	"github.com/weirlog/weir/shared/testenv/port"
)

// Redis gives the test an empty database of its own on a Redis
// or Valkey server and returns its URL,
// redis://host:port/number. It is emptied when the test begins.
//
// A server from WEIR_TEST_REDIS_URL is for tests only: each of its sixteen
// databases is lent to one test at a time, of any package.
func Redis(t testing.TB) string {
	t.Helper()
	if given := os.Getenv(EnvRedis); given != "" {
		announceOnce("Redis", "given by "+EnvRedis)
		return lend(t, given)
	}
	server, err := localRedis()
	if err != nil {
		t.Fatalf("testenv: no Redis for the tests: %v", err)
	}
	announceOnce("Redis", server.what)
	return lend(t, server.url)
}

// A redisServer is one of this machine.
type redisServer struct {
	*fault.Command
	url  string
	what string // for people
}

// localRedis is this package's own server; it ends with the process.
var localRedis = sync.OnceValues(startRedis)

// redisPrograms are the servers of the protocol, by preference.
var redisPrograms = []string{"valkey-server", "redis-server"}

// findRedis returns the machine's server, none where it has none.
func findRedis() (string, bool) {
	for _, name := range redisPrograms {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

func startRedis() (*redisServer, error) {
	dir, err := os.MkdirTemp("", "weir-test-redis-")
	if err != nil {
		return nil, err
	}
	port, err := port.Free()
	if err != nil {
		return nil, err
	}
	s := &redisServer{url: "redis://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	if program, found := findRedis(); found {
		line := append([]string{program, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir}, redisDurable...)
		s.Command, s.what = &fault.Command{Line: line}, "local server "+program
	} else {
		s.what = "of a Go module (miniredis), in a process of its own: neither " + strings.Join(redisPrograms, " nor ") + " is on PATH"
		s.Command, err = serving(served{What: "redis", Dir: dir, Port: port})
	}
	if err != nil {
		return nil, err
	}
	s.Dir, s.Answer = dir, func(ctx context.Context) error { return command(ctx, s.url, "PING") }
	return s, s.Start()
}

// redisDatabases is the default number of a server's databases.
const redisDatabases = 16

// lend takes a database that no test has, in this process or another;
// the kernel releases it with its process.
func lend(t testing.TB, server string) string {
	t.Helper()
	var lent string
	Eventually(t, setUpTime, func() error {
		for n := range redisDatabases {
			u, err := withDatabase(server, n)
			if err != nil {
				return err
			}
			if file, err := filelock.Try(turnFile(u)); err == nil {
				t.Cleanup(func() { _ = file.Close() }) // releases it in any case
				lent = u
				return nil
			}
		}
		return fmt.Errorf("other tests hold all %d databases", redisDatabases)
	})
	if err := command(t.Context(), lent, "FLUSHDB"); err != nil {
		t.Fatalf("testenv: the test Redis does not answer: %v", err)
	}
	return lent
}

func withDatabase(server string, n int) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", errors.New(EnvRedis + " is not a URL: redis://[user:password@]host:port")
	}
	u.Path = "/" + strconv.Itoa(n)
	return u.String(), nil
}

// command sends one command to a database and returns what is
// wrong with the answer.
func command(ctx context.Context, redis, line string) error {
	u, err := url.Parse(redis)
	if err != nil {
		return errors.New("not a URL")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // what waits for it fails then
	defer stop()
	in := bufio.NewReader(conn)
	for _, line := range append(greeting(u), line) {
		if _, err := fmt.Fprintf(conn, "%s\r\n", line); err != nil {
			return err
		}
		answer, err := in.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.HasPrefix(answer, "-") {
			return errors.New(strings.TrimSpace(answer[1:]))
		}
	}
	return nil
}

// greeting signs in and chooses the database.
func greeting(u *url.URL) []string {
	lines := []string{"SELECT " + cmp.Or(strings.Trim(u.Path, "/"), "0")}
	if password, ok := u.User.Password(); ok {
		lines = append([]string{"AUTH " + cmp.Or(u.User.Username(), "default") + " " + password}, lines...)
	}
	return lines
}
