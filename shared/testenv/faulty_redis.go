package testenv

import (
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/testenv/fault"
)

// faultyRedis is this package's second server, as faultyServer is.
var faultyRedis = sync.OnceValues(startRedis)

// cacheServer returns the URL of a test's database on a server for faults.
func cacheServer(t testing.TB) (url string, process fault.Process, where string, err error) {
	t.Helper()
	if url := given(EnvRedis); url != "" {
		return lend(t, url), fault.Given(EnvRedis), "given by " + EnvRedis, nil
	}
	if backend() == "containers" {
		url, process, err := containerRedis(t)
		return url, process, "container of " + RedisImage(), err
	}
	server, err := faultyRedis()
	if err != nil {
		return "", nil, "", err
	}
	return lend(t, server.url), server.Command, server.what, nil
}
