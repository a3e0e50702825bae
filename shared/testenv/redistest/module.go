package redistest

import (
	"net"
	"strconv"
	"time"

	"github.com/weirlog/weir/shared/testenv/internal/serve"
	"github.com/weirlog/weir/shared/testenv/redis"
)

// aRedis names the process of the module's Redis.
const aRedis = "redis"

func init() { serve.As(aRedis, serveRedis) } //nolint:gochecknoinits // see serve.As

// serveRedis returns only on an error: the process is killed.
func serveRedis(dir string, port int) error {
	server, err := redis.Open(dir, time.Now)
	if err != nil {
		return err
	}
	ln, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return err
	}
	return server.Serve(ln)
}
