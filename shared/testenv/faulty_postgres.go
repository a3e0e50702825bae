package testenv

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv/fault"
)

// faultyServer is this package's second server: what happens to it
// must not happen to tests without faults.
var faultyServer = sync.OnceValues(func() (*postgres.Server, error) { return localPostgres(context.Background(), true) })

// databaseServer returns the URL of a superuser on a server for faults.
func databaseServer(t testing.TB) (admin string, process fault.Process, where string, err error) {
	t.Helper()
	if url := given(EnvDatabase); url != "" {
		return url, fault.Given(EnvDatabase), "given by " + EnvDatabase, nil
	}
	switch b := backend(); b {
	case "containers":
		admin, process, err = containerPostgres(t)
		return admin, process, "container of " + PostgresImage(), err
	case "machine", "kafka":
		server, err := faultyServer()
		if err != nil {
			return "", nil, "", err
		}
		return server.AdminURL(), server, "local server, binaries in " + server.Binaries(), nil
	default:
		return "", nil, "", errors.New(EnvBackend + " is " + b + ": it can be machine, kafka or containers")
	}
}
