package testenv

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/embedded/kafka"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/redis"
)

// envServe makes a test program a server: that is how one gets a
// process of its own.
const envServe = "WEIR_TEST_SERVE"

// served is what envServe holds.
type served struct {
	What string // broker or redis
	Dir  string // where it keeps its data
	Port int
}

// serving is the command that starts this program once more, as a server.
func serving(s served) (*fault.Command, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	return &fault.Command{Line: []string{program}, Env: []string{envServe + "=" + string(text)}}, nil
}

// A test of any package may need such a process, and a package
// has at most one TestMain.
func init() { //nolint:gochecknoinits // see above
	text := os.Getenv(envServe)
	if text == "" {
		return
	}
	var s served
	err := json.Unmarshal([]byte(text), &s)
	if err == nil {
		err = s.serve()
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// serve returns only if it cannot: the process is killed.
func (s served) serve() error {
	if s.What == "redis" {
		return s.serveRedis()
	}
	if _, err := kafka.Start(kafka.Config{Open: true, Dir: s.Dir, Port: s.Port, Logger: discard()}); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	select {}
}

func (s served) serveRedis() error {
	server, err := redis.Open(s.Dir, time.Now) //nolint:forbidigo // a process of its own, and this is where its clock comes in
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port)))
	if err != nil {
		return err
	}
	return server.Serve(ln)
}
